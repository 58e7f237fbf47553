package record

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

func TestRunWritesUntilItEnds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "record")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
		defer cancel()
		if err := Run(ctx, file, 300*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	})
	events, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if events.Count(Written) < 6 || events.Count(Signaled) != 1 || events[len(events)-1].Name != Ended {
		t.Errorf("the record has %v", events)
	}
	if took := events.First(Ended).Sub(events.First(Signaled)); took != 300*time.Millisecond {
		t.Errorf("the program ended %v after SIGTERM", took)
	}
	if !events.Last().Equal(events.First(Ended)) {
		t.Errorf("the last event is at %v", events.Last())
	}
}

func TestIncompleteLineIsNoEvent(t *testing.T) {
	file := filepath.Join(t.TempDir(), "record")
	if events, err := Read(file); err != nil || events.Count(Written) != 0 || !events.Last().IsZero() {
		t.Errorf("a missing file has %v, %v", events, err)
	}
	if err := os.WriteFile(file, []byte("2026-11-29T12:00:00.5Z written\n2026-11-29T12:0"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := time.Date(2026, 11, 29, 12, 0, 0, 500e6, time.UTC)
	if events, err := Read(file); err != nil || len(events) != 1 || !events.First(Written).Equal(want) {
		t.Errorf("the record has %v, %v", events, err)
	}
	if err := os.WriteFile(file, []byte("soon written\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if events, err := Read(file); err == nil {
		t.Errorf("a record without a time has %v", events)
	}
}
