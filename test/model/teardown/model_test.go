package teardown_test

import (
	"flag"
	"slices"
	"testing"

	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/test/model/explore"
	. "github.com/exeunt-io/exeunt/test/model/teardown"
)

var deep = flag.Bool("deep", false, "explore the large worlds, too")

func TestPromisesHold(t *testing.T) {
	worlds := Worlds()
	if *deep {
		worlds = append(worlds, Deep()...)
	}
	for _, w := range worlds {
		t.Run(w.Name, func(t *testing.T) {
			result, err := explore.Run(w, explore.Limits{Violations: 1})
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range result.Violations {
				t.Error(v)
			}
			t.Logf("%d states, %d steps, %d at rest", result.States, result.Steps, result.Resting)
		})
	}
}

// decider is a decision of a teardown.
type decider func(teardown.State) teardown.Decision

// as decides for a state that somebody changed.
func as(change func(*teardown.State)) decider {
	return func(s teardown.State) teardown.Decision {
		change(&s)
		return teardown.Decide(s)
	}
}

// instead takes another action.
func instead(of, other teardown.Action) decider {
	return func(s teardown.State) teardown.Decision {
		d := teardown.Decide(s)
		if d.Action == of {
			d.Action = other
		}
		return d
	}
}

// early deletes before the start.
func early(s teardown.State) teardown.Decision {
	d := teardown.Decide(s)
	if d.Action == teardown.Start && s.Work == teardown.Ready {
		d.Action = teardown.Delete
	}
	return d
}

// unfreezes removes the freeze whenever the teardown is stopped.
func unfreezes(s teardown.State) teardown.Decision {
	d := teardown.Decide(s)
	switch {
	case d.Phase != teardown.Stopped || !s.Started || s.Freeze == teardown.NoFreeze:
	case s.Confirmed:
		d.Action = teardown.Unfreeze
	default:
		d.Action = teardown.Confirm
	}
	return d
}

// finished takes what the watches show for all there is.
func finished(s teardown.State) teardown.Decision {
	if s.Work == teardown.Quiet {
		s.Work = teardown.Finished
	}
	return teardown.Decide(s)
}

// defect is a defect of the runner, in a world in which it breaks a rule.
type defect struct {
	world World
	rule  string
}

// changed is a world whose decision rests on a state that somebody changed.
func changed(left Left, change func(*teardown.State)) World {
	return World{Decide: as(change), Left: left}
}

var defects = map[string]defect{
	"nothing is read live": {changed(Left{Protects: 1, Stalls: 1}, func(s *teardown.State) { s.Confirmed = true }),
		"Unpermitted"},
	"the deadline is ignored": {changed(Left{Expires: 1}, func(s *teardown.State) { s.Word = max(s.Word, teardown.ValidWord) }),
		"Unpermitted"},
	"protection is ignored": {changed(Left{Protects: 1}, func(s *teardown.State) { s.Protected = false }), "Unpermitted"},
	"another ID permits":    {changed(Left{Errs: 1}, anyWord), "Unpermitted"},
	"a restored teardown goes on": {changed(Left{Backups: 1, Restores: 1}, func(s *teardown.State) { s.Restored = false }),
		"Unpermitted"},
	"the deleted CRD is ignored": {changed(Left{DeletesDefinition: 1}, func(s *teardown.State) { s.Undefined = false }),
		"Unasked"},
	"deletes before the start":    {World{Decide: early}, "NotStarted"},
	"marks are not awaited":       {changed(Left{}, func(s *teardown.State) { s.Kept = true }), "Unmarked"},
	"a volume is not read live":   {World{Unread: true, Left: Left{Labels: 1, Stalls: 1}}, "KeptClaim"},
	"a disk that a user has kept": {World{Unread: true, Left: Left{Labels: 1, Stalls: 1}}, "DiskLost"},
	"an unseen volume is not read": {World{Requested: true, Unseen: true, Left: Left{SlowCalls: 1, Labels: 1, Stalls: 1}},
		"DiskLost"},
	"requests are not recorded": {World{Requested: true, Unrecorded: true,
		Left: Left{SlowCalls: 1, DeletesClaim: 1, Crashes: 1}}, "FalseComplete"},
	"a DELETE without a version": {World{Service: true, Unguarded: true, Left: Left{LabelsService: 1, Stalls: 1}},
		"BalancerLost"},
	"an abort that saves nothing":  {World{Unsaved: true, Left: Left{Protects: 1}}, "DiskLost"},
	"waves are ignored":            {World{Lowest: true, Flat: true}, "OutOfOrder"},
	"unfreezes after the start":    {World{Decide: unfreezes, Left: Left{Protects: 1}}, "Unfrozen"},
	"never unfreezes":              {World{Decide: instead(teardown.Unfreeze, teardown.Wait), Left: Left{Protects: 1}}, "Hindered"},
	"the freeze is not awaited":    {changed(Left{}, inForce), "Hidden"},
	"the Lease is ignored":         {changed(Left{Takeovers: 1}, func(s *teardown.State) { s.Leading = true }), "NotLeader"},
	"released without a record":    {World{Decide: instead(teardown.Record, teardown.Release)}, "FalseComplete"},
	"nothing is listed at the end": {World{Decide: finished, Left: Left{Unfreezes: 1, Stalls: 1}}, "FalseComplete"},
	"nothing is deleted":           {World{Decide: instead(teardown.Delete, teardown.Wait)}, "Hangs"},
}

func anyWord(s *teardown.State) {
	if s.Word == teardown.OtherWord {
		s.Word = teardown.ValidWord
	}
}

func inForce(s *teardown.State) {
	if s.Freeze == teardown.Written {
		s.Freeze = teardown.InForce
	}
}

// TestDefectsAreFound shows that each rule can be broken.
func TestDefectsAreFound(t *testing.T) {
	for name, d := range defects {
		t.Run(name, func(t *testing.T) {
			d.world.Left.Permits, d.world.Left.Deletes = 1, 1
			result, err := explore.Run(d.world, explore.Limits{Until: []string{d.rule}})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(result.Violations, func(v explore.Violation) bool { return v.Rule == d.rule }) {
				t.Errorf("%d states, want a broken rule %s, got %v", result.States, d.rule, result.Violations)
			}
		})
	}
}
