package main

import (
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/runner"
)

// A script that deletes machines reads the exit code: 0 only if all that was to be deleted is known to be gone.
func TestExitCodeSaysWhatIsLeft(t *testing.T) {
	item := func(fate teardown.Fate, verdicts ...string) teardown.Item {
		made := teardown.Item{Kind: teardown.Volume, Plan: teardown.PlanDelete, Fate: fate}
		for _, verdict := range verdicts {
			made.Blockers = append(made.Blockers, teardown.Blocker{Verdict: verdict})
		}
		return made
	}
	kept := teardown.Item{Kind: teardown.Volume, Plan: teardown.PlanKeep, Fate: teardown.Kept}
	gone, stuck, waits := item(teardown.Gone), item(teardown.Remains, "stuck"), item(teardown.Remains, "waiting")
	unknown, unread := item(teardown.Unknown), []string{"not read"}
	for name, tc := range map[string]struct {
		phase      teardown.Phase
		items      []teardown.Item
		incomplete []string
		early      bool
		want       int
	}{
		"all is gone":                 {phase: teardown.Complete, items: []teardown.Item{gone, kept}},
		"complete, one unknown":       {phase: teardown.Complete, items: []teardown.Item{gone, unknown}, want: 2},
		"complete, a record edited":   {phase: teardown.Complete, incomplete: unread, want: 2},
		"a deadline":                  {phase: teardown.Stopped, items: []teardown.Item{gone, waits}, want: 2},
		"all that remains is stuck":   {phase: teardown.Stopped, items: []teardown.Item{gone, stuck, kept}, want: 3},
		"one is stuck, one not":       {phase: teardown.Stopped, items: []teardown.Item{stuck, waits}, want: 2},
		"one is stuck, one unknown":   {phase: teardown.Stopped, items: []teardown.Item{stuck, unknown}, want: 2},
		"stuck, and not all was read": {phase: teardown.Stopped, items: []teardown.Item{stuck}, incomplete: unread, want: 2},
		"it never started":            {phase: teardown.Armed, items: []teardown.Item{stuck}, early: true, want: 2},
		"nothing is known":            {phase: teardown.Stopped, want: 2},
	} {
		flags := teardownFlags{config: genericclioptions.NewConfigFlags(true), confirm: clusterID,
			timeout: teardownTimeout(alive.DefaultTimeout)}
		document := &teardown.Document{Items: tc.items, Incomplete: tc.incomplete}
		if !tc.early {
			document.Started = new(time.Time)
		}
		err := flags.codeOf(document, &runner.Outcome{Phase: tc.phase, Message: "why"})
		if code := terminal.ExitStatus(err); code != tc.want {
			t.Errorf("%s: exit code %d, want %d: %v", name, code, tc.want, err)
		}
		if tc.want > 0 && tc.phase != teardown.Complete && !strings.Contains(err.Error(), "teardown --confirm="+clusterID) {
			t.Errorf("%s: how to go on is missing: %v", name, err)
		}
	}
}
