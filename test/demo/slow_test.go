package demo

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestSlowPrinterPausesAndNobodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slow, quick bytes.Buffer
		begun := time.Now()
		printer := NewSlowTextPrinter(t.Context(), &slow, false)
		if err := printer.Begin(false); err != nil {
			t.Fatal(err)
		}
		for _, event := range story {
			if err := printer.Event(event); err != nil {
				t.Fatal(err)
			}
		}
		if waited := time.Since(begun); waited != 0 {
			t.Errorf("the events took %v, want no wait", waited)
		}
		if err := printer.End(leaked); err != nil {
			t.Fatal(err)
		}
		// Of the events a step, a check and 5 lines are printed, and then the result.
		if took, want := time.Since(begun), 3*stepPause+5*linePause; took != want {
			t.Errorf("the run took %v, want %v", took, want)
		}
		if err := printer.Summarize([]Outcome{reclaimed, leaked}); err != nil {
			t.Fatal(err)
		}
		show(t, NewTextPrinter(&quick, false), story, leaked)
		if slow.String() != quick.String() {
			t.Errorf("printed slowly:\n%s\nwant:\n%s", &slow, &quick)
		}
	})
}

func TestSlowPrinterEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		var out bytes.Buffer
		printer := NewSlowTextPrinter(ctx, &out, false)
		if err := printer.Begin(true); err != nil {
			t.Fatal(err)
		}
		interrupt()
		for _, event := range story {
			if err := printer.Event(event); err != nil {
				t.Fatal(err)
			}
		}
		if err := printer.End(reclaimed); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), "CreateVolume") {
			t.Errorf("printed after the interruption:\n%s", &out)
		}
	})
}

func TestSlowPrinterReportsTheOutput(t *testing.T) {
	printer := NewSlowTextPrinter(t.Context(), closedWriter{}, false)
	if err := printer.Begin(true); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("Begin = %v, want the error of the output", err)
	}
}
