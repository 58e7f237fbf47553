package nodes_test

import (
	"slices"
	"testing"

	"github.com/exeunt-io/exeunt/pkg/termination/node"
	"github.com/exeunt-io/exeunt/test/model/explore"
	. "github.com/exeunt-io/exeunt/test/model/nodes"
)

func TestPromisesHold(t *testing.T) {
	for _, w := range Worlds() {
		t.Run(w.Name, func(t *testing.T) {
			result, err := explore.Run(w, explore.Limits{})
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

// TestDefectsAreFound shows that each rule can be broken.
func TestDefectsAreFound(t *testing.T) {
	instead := func(of, other node.Action) func(node.State) node.Decision {
		return func(s node.State) node.Decision {
			d := node.Decide(s)
			if d.Action == of {
				d.Action = other
			}
			return d
		}
	}
	stuck := func(s node.State) node.Decision {
		if s.Proof == node.Given && s.Volumes == node.Detached {
			return node.Decision{}
		}
		return node.Decide(s)
	}
	dead := Faults{KubeletDies: 1}
	for name, tc := range map[string]struct {
		world World
		rule  string
	}{
		"the taint before the proof":     {World{Decide: instead(node.Stop, node.MarkOutOfService), Left: dead}, TwoWriters},
		"Delete instead of Stop":         {World{Decide: instead(node.Stop, node.DeleteInstance)}, DiskLost},
		"released before the detach":     {World{Decide: instead(node.MarkOutOfService, node.Release), Left: dead}, ReleasedEarly},
		"never released":                 {World{Decide: stuck, Left: dead}, NodeStuck},
		"the Lease is not read":          {World{Prove: leaseUnread, Left: Faults{Lies: 1}}, RunningPodRemoved},
		"an unknown machine is believed": {World{Prove: unseenIsGone, Unknown: true, Left: dead}, RunningPodRemoved},
	} {
		t.Run(name, func(t *testing.T) {
			tc.world.Provider, tc.world.Deadline = node.Socket, true
			result, err := explore.Run(tc.world, explore.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(result.Violations, func(v explore.Violation) bool { return v.Rule == tc.rule }) {
				t.Errorf("%d states, want a broken rule %s, got %v", result.States, tc.rule, result.Violations)
			}
		})
	}
}

func leaseUnread(_ World, s State) node.Proof {
	if s.Answered == node.Off && s.Answers >= 2 {
		return node.Given
	}
	return node.NoProof
}

func unseenIsGone(_ World, s State) node.Proof {
	if s.Answered == node.Unseen && !s.Kubelet {
		return node.Given
	}
	return node.NoProof
}
