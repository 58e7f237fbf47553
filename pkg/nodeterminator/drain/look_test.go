package drain

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/termination/pod"
)

// looked is a node that is only looked at.
func looked(w *world) *Node {
	n := w.drainer.Node("m", "uid-of-m")
	n.Look(time.Now())
	synctest.Wait()
	return n
}

func onM(p *v1.Pod) { p.Spec.NodeName = "m" }

// seen returns the pods that block, with the reason.
func (w *world) seen(n *Node) (pods []string) {
	w.t.Helper()
	sight := n.Look(time.Now())
	if !sight.Known {
		w.t.Fatal("the pods are not known")
	}
	for _, left := range sight.Blocking {
		pods = append(pods, left.Pod+" "+left.Reason+" "+left.Holder)
	}
	return pods
}

// #62 What blocks is what an eviction would meet; nothing is sent.
func TestLookNamesPodsThatBlock(t *testing.T) {
	inWorld(t, 3600, func(w *world) {
		n := looked(w)
		w.setBudget(allowing("full", 0))
		w.pod("free", 30, onM, func(p *v1.Pod) { p.Labels = map[string]string{"app": "none"} })
		w.pod("full", 30, onM)
		w.pod("kept", 30, onM, func(p *v1.Pod) {
			p.Labels = nil
			p.Annotations = map[string]string{pod.DoNotDisruptAnnotation: "true"}
		})
		w.pod("static", 30, onM, func(p *v1.Pod) {
			p.Annotations = map[string]string{v1.MirrorPodAnnotationKey: "x", pod.DoNotDisruptAnnotation: "true"}
		})
		want := []string{"default/full BudgetBlocks default/full", "default/kept DoNotDisrupt "}
		if got := w.seen(n); !slices.Equal(got, want) {
			t.Errorf("blocking: %q, want %q", got, want)
		}
		w.setBudget(allowing("full", 1))
		w.setBudget(allowing("second", 1))
		want[0] = "default/full EvictionRefused default/full, default/second"
		if got := w.seen(n); !slices.Equal(got, want) {
			t.Errorf("blocking: %q, want %q", got, want)
		}
		w.expectRequests()
	})
}

// #62 The time of do-not-disrupt comes by itself, and critical pods are not hidden by the order of a drain.
func TestLookSaysWhenItChanges(t *testing.T) {
	inWorld(t, 3600, func(w *world) {
		n, critical := looked(w), int32(2_000_000_000)
		w.pod("ordinary", 30, onM)
		w.pod("kept", 30, onM, func(p *v1.Pod) {
			p.Spec.Priority, p.Annotations = &critical, map[string]string{pod.DoNotDisruptAnnotation: "2h"}
		})
		if got := w.seen(n); len(got) != 1 {
			t.Errorf("blocking: %q", got)
		}
		until := w.begun.Add(time.Hour) // the pod is an hour old
		if next := n.Look(time.Now()).Next; !next.Equal(until) {
			t.Errorf("it changes at %v, want %v", next, until)
		}
		<-time.After(time.Hour)
		if got := w.seen(n); len(got) > 0 {
			t.Errorf("blocking: %q", got)
		}
	})
}

// #62 Nobody polls: pods and budgets have a node that is looked at reconciled.
func TestChangeOfBudgetNotifiesWhoLooks(t *testing.T) {
	var told []string
	inWorld(t, 3600, func(w *world) {
		n := looked(w)
		told = nil
		w.setBudget(allowing("web", 0))
		if !slices.Contains(told, "m") {
			t.Error("the budget came, and nobody was told")
		}
		if told = nil; w.seen(n) != nil {
			t.Error("a pod blocks")
		}
		w.pod("web", 30, onM)
		if !slices.Contains(told, "m") {
			t.Error("a pod came, and nobody was told")
		}
		if got := w.seen(n); len(got) != 1 {
			t.Errorf("blocking: %q", got)
		}
		if _, err := n.Reconcile(t.Context(), w.view); err != nil {
			t.Error(err)
		}
		told = nil
		w.setBudget(allowing("other", 0))
		if slices.Contains(told, "m") {
			t.Error("a node that is drained was told about a budget")
		}
	}, func(w *world) {
		w.config.Notify = func(node string) {
			if node == "m" { // with the lock of the drainer
				told = append(told, node)
				return
			}
			w.wake()
		}
	})
}

// #62 300 nodes that are looked at are not reconciled for each change of a budget of other pods.
func TestBudgetOfOtherPodsNotifiesNobody(t *testing.T) {
	var told int
	inWorld(t, 3600, func(w *world) {
		n, other := looked(w), func(allowed int32, of string) {
			b := budgetOf("other", selecting(of))
			b.Status.DisruptionsAllowed, b.ResourceVersion = allowed, of+fmt.Sprint(allowed)
			w.setBudget(b)
		}
		w.setBudget(allowing("web", 1))
		other(1, "other")
		w.pod("web", 30, onM)
		if got := w.seen(n); len(got) > 0 {
			t.Errorf("blocking: %q", got)
		}
		told = 0
		other(0, "other")
		if told > 0 {
			t.Errorf("a budget of other pods changed, and the node was told %d times", told)
		}
		w.setBudget(allowing("web", 0))
		if told == 0 {
			t.Error("the budget of a pod changed, and nobody was told")
		}
		told = 0
		other(0, "web")
		if told == 0 {
			t.Error("a budget selects the pod now, and nobody was told")
		}
	}, func(w *world) {
		w.config.Notify = func(node string) {
			if node == "m" { // with the lock of the drainer
				told++
				return
			}
			w.wake()
		}
	})
}

// #62 Budgets that may not be read are not budgets with room.
func TestLookKnowsNothingWithoutBudgets(t *testing.T) {
	inWorld(t, 3600, func(w *world) {
		n := looked(w)
		if n.Look(time.Now()).Known {
			t.Error("the budgets are said to be known")
		}
	}, func(w *world) { w.config.Budgets = nil })
}
