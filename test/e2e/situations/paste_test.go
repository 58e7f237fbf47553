package situations

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/printertest"
)

var record = flag.Bool("record", false, "write testdata/next.json, whose steps the tests of pkg/why/printer paste")

// recorded are the next steps by situation.
var recorded = struct {
	sync.Mutex
	steps map[string][]string
}{steps: map[string][]string{}}

// paste pastes each next step of the report as a user would, and records the step.
func (r *place) paste(report blocker.Report) {
	r.T.Helper()
	_, situation, _ := strings.Cut(r.T.Name(), "/")
	for _, next := range stepsOf(report.Blockers) {
		printertest.ExpectSafePaste(r.T, next)
		recorded.Lock()
		if !slices.Contains(recorded.steps[situation], next) {
			recorded.steps[situation] = append(recorded.steps[situation], next)
		}
		recorded.Unlock()
	}
}

// stepsOf returns the next steps of all blockers.
func stepsOf(blockers []blocker.Blocker) []string {
	var steps []string
	for _, one := range blockers {
		if one.Next != "" {
			steps = append(steps, one.Next)
		}
		steps = append(steps, stepsOf(one.Blockers)...)
	}
	return steps
}

// writeRecord writes the recorded steps of the situations that ran, if the user wants that.
func writeRecord(t *testing.T) {
	t.Helper()
	if !*record {
		return
	}
	file, all := harness.InCheckout("test", "e2e", "situations", "testdata", "next.json"), map[string][]string{}
	if text, err := os.ReadFile(file); err == nil {
		if err := json.Unmarshal(text, &all); err != nil {
			t.Fatal(err)
		}
	}
	maps.Copy(all, recorded.steps)
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}
