package nodes_test

import (
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/deadline"
	"github.com/exeunt-io/exeunt/pkg/termination/node"
	"github.com/exeunt-io/exeunt/pkg/termination/pod"
	"github.com/exeunt-io/exeunt/test/model/explore"
	. "github.com/exeunt-io/exeunt/test/model/nodes"
)

var deep = flag.Bool("deep", false, "explore the largest worlds, too")

func TestPromisesHold(t *testing.T) {
	worlds := slices.Concat(Worlds(), Larger())
	if *deep {
		worlds = append(worlds, Deep()...)
	}
	for _, w := range worlds {
		t.Run(w.Name, func(t *testing.T) {
			t.Parallel()
			result, err := explore.Run(w.Explore(), explore.Limits{})
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

// instead takes another action.
func instead(of, other node.Action) func(node.State) node.Decision {
	return func(s node.State) node.Decision {
		d := node.Decide(s)
		if d.Action == of {
			d.Action = other
		}
		return d
	}
}

func stuck(s node.State) node.Decision {
	if s.Proof == node.Given && s.Volumes == node.Detached {
		return node.Decision{}
	}
	return node.Decide(s)
}

// daemonAtL takes the pod of a DaemonSet for one whose L counts.
func daemonAtL(v pod.View, p *v1.Pod, t pod.Tiers) pod.State {
	state, ordinary := v.Observe(p, t), p.DeepCopy()
	ordinary.OwnerReferences = nil
	state.Moment = v.MomentOf(ordinary)
	return state
}

// shortenedEarly takes L for P - 5 s.
func shortenedEarly(v pod.View, p *v1.Pod, t pod.Tiers) pod.State {
	state := v.Observe(p, t)
	if state.Moment == pod.FromL {
		state.Moment = pod.FromShortening
	}
	return state
}

// laterObeyed obeys each annotation.
func laterObeyed(d deadline.Deadline, annotation string) deadline.Deadline {
	if end, err := time.Parse(time.RFC3339, annotation); err == nil {
		d.End = end
	}
	return d
}

func oneAnswer(w World, s *State, n int) node.Proof { return w.ProveBy(s, n, 1) }

func leaseUnread(_ World, s *State, n int) node.Proof {
	if m := s.Leader.Memory[n]; m.Answered == node.Off && m.Answers >= 2 {
		return node.Given
	}
	return node.NoProof
}

func unseenIsGone(_ World, s *State, n int) node.Proof {
	if s.Leader.Memory[n].Answered == node.Unseen && !s.Machines[n].Kubelet {
		return node.Given
	}
	return node.NoProof
}

// defects are found by name, each in a world in which it breaks a rule.
var defects = map[string]struct {
	world World
	rule  Rules
}{
	"proof after one answer": {World{Prove: oneAnswer, Left: Faults{KubeletDies: 1, Errs: 1}}, RunningPodRemoved},
	"taint before proof": {World{Decide: instead(node.Stop, node.MarkOutOfService), Left: Faults{KubeletDies: 1}},
		TwoWriters},
	"Delete for Stop": {World{StopDeletes: true, Left: Faults{KubeletDies: 1}}, DiskLost},
	"Lease unread":    {World{Prove: leaseUnread, LeaseUnread: true, Left: Faults{Lies: 1}}, RunningPodRemoved},
	"UID unread": {World{UIDUnread: true, Without: [3]bool{1: true}, Left: Faults{LateWrites: 1, Strips: 1, Registers: 1}},
		Untouched},
	"DaemonSet at L":          {World{Observe: daemonAtL, Driver: true, Fine: true}, DriverFirst},
	"shortened early":         {World{Observe: shortenedEarly, Long: true, Left: Faults{DeletesPod: 1}}, GraceCut},
	"later annotation obeyed": {World{Tighten: laterObeyed, Left: Faults{Edits: 1}}, NodeStuck},
	"Node released before detach": {World{Decide: instead(node.MarkOutOfService, node.Release),
		Left: Faults{KubeletDies: 1}}, ReleasedEarly},
	"Gone believed unseen": {World{Prove: unseenIsGone, Unknown: true, Left: Faults{KubeletDies: 1}}, RunningPodRemoved},
	"Node unread":          {World{Unread: true, Without: [3]bool{1: true}, Left: Faults{Stalls: 1, Strips: 1}}, Untouched},
	"attachments unread": {World{Unlisted: true, Two: true, Without: [3]bool{0: true, 2: true},
		Left: Faults{Stalls: 1}}, DiskLost},
	"never released": {World{Decide: stuck, Left: Faults{KubeletDies: 1}}, NodeStuck},
}

// TestDefectsAreFound puts each defect back.
func TestDefectsAreFound(t *testing.T) {
	for name, d := range defects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d.world.Provider, d.world.Deadline = node.Socket, true
			result, err := explore.Run(d.world.Explore(), explore.Limits{Until: []string{d.rule.String()}})
			if err != nil {
				t.Fatal(err)
			}
			at := slices.IndexFunc(result.Violations, func(v explore.Violation) bool { return v.Rule == d.rule.String() })
			if at < 0 {
				t.Fatalf("%d states, want a broken rule %v, got %v", result.States, d.rule, result.Violations)
			}
			t.Logf("%d states\n%s", result.States, strings.Join(result.Violations[at].Story, "\n"))
		})
	}
}
