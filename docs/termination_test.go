package docs_test

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/exeunt-io/exeunt/pkg/deadline"
	"github.com/exeunt-io/exeunt/pkg/termination"
)

// The markers of the table of times.
const (
	beginTimes = "<!-- Written by a test, do not edit: begin -->\n"
	endTimes   = "<!-- Written by a test: end -->\n"
)

// terminationPage returns docs/node-termination.md with the table of times as they are computed.
func terminationPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("node-termination.md")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(text), beginTimes)
	_, after, ends := strings.Cut(rest, endTimes)
	if !begins || !ends {
		t.Fatal("the page lacks the markers of the table of times")
	}
	return before + beginTimes + timesTable() + endTimes + after
}

// timesTable has the times of three periods, as durations after the deletion, while a volume is attached.
func timesTable() string {
	periods := []time.Duration{5 * time.Minute, 30 * time.Minute, 2 * time.Hour}
	graces := []time.Duration{30 * time.Second, 10 * time.Minute, time.Hour}
	requested := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	times := func(period time.Duration) deadline.Times {
		return deadline.Of(requested, deadline.Limited(period)).Times(requested, true)
	}
	rows := []string{"| after the deletion", "| ---"}
	var end, stop strings.Builder
	for _, period := range periods {
		rows[0] += " | T = " + plain(period)
		rows[1] += " | ---"
		fmt.Fprintf(&end, " | %s", plain(times(period).GraceEnds.Sub(requested)))
		fmt.Fprintf(&stop, " | %s", plain(times(period).Stop.Sub(requested)))
	}
	for _, grace := range graces {
		row := "| L of a pod with g = " + plain(grace)
		for _, period := range periods {
			row += " | " + forcedAt(times(period), grace, requested)
		}
		rows = append(rows, row)
	}
	rows = append(rows, "| P, all grace periods have ended"+end.String(), "| D, the machine is stopped"+stop.String())
	return strings.Join(rows, " |\n") + " |\n"
}

// forcedAt returns L, and what a pod gets that is deleted at once because L is before the deletion.
func forcedAt(times deadline.Times, grace time.Duration, requested time.Time) string {
	if forced := times.Forced(grace); forced.After(requested) {
		return plain(forced.Sub(requested))
	}
	return "at once, gets " + plain(time.Duration(times.Grace(grace, requested))*time.Second)
}

// plain returns a duration without parts that are 0.
func plain(d time.Duration) string {
	text := d.String()
	if d%time.Minute == 0 {
		text = strings.TrimSuffix(text, "0s")
	}
	if d%time.Hour == 0 {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// terminationSchema returns docs/schemas/node-termination.schema.json.
func terminationSchema(t *testing.T) string {
	s := newSchema(t, map[reflect.Type][]string{
		reflect.TypeFor[termination.Phase](): {
			string(termination.PhaseDraining), string(termination.PhaseDetaching), string(termination.PhaseStopping),
			string(termination.PhaseCleaning), string(termination.PhaseEnded), string(termination.PhaseAbandoned),
		},
	})
	return s.text("the report of a termination, key "+termination.ReportKey+" of a ConfigMap with the label "+
		termination.ReportLabel, s.of(reflect.TypeFor[termination.Report]()))
}
