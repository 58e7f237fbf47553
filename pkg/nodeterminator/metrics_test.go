package nodeterminator

import (
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/termination"
)

func TestInvalidDeadlinesAreCounted(t *testing.T) {
	invalid := claimWith("claimed", termination.ClaimGroup, "9999999h")
	c := &Controller{caches: &Caches{Nodes: cache.NewSharedIndexInformer(&cache.ListWatch{}, &v1.Node{}, 0, cache.Indexers{})},
		Config: Config{Claims: claimsRead(t, invalid)}}
	for name, change := range map[string]func(*v1.Node){
		"valid":      func(*v1.Node) {},
		"unlabeled":  func(n *v1.Node) { n.Labels = nil },
		"unreadable": func(n *v1.Node) { n.Labels[termination.Label] = "1d" },
		"claimed":    func(*v1.Node) {},
		"karpenters": func(n *v1.Node) { n.Labels[termination.Label], n.Labels[karpenterPool] = "1d", "default" },
	} {
		n := labeledNode()
		n.Name = name
		change(n)
		if err := c.caches.Nodes.GetStore().Add(n); err != nil {
			t.Fatal(err)
		}
	}
	if count := c.invalidDeadlines(); count != 2 {
		t.Errorf("%d deadlines count as invalid, want those of unreadable and claimed", count)
	}
}

// Its machine ran past the deadline until the last pod ended by itself. A finalizer of others keeps the Node.
func TestReleasedNodeIsInNoMetric(t *testing.T) {
	n := deletedNode("a", "30s", time.Now())
	n.Finalizers = append(n.Finalizers, "others.example/keep")
	inWorld(t, func(w *world) {
		one := w.begun(n)
		one.report.Phase, one.report.OverdueSeconds = termination.PhaseDraining, 600
		one.summarize()
		if counts, longest := w.summary(); counts[termination.PhaseDraining] != 1 || longest != 600 {
			w.t.Fatalf("%v, overdue %d s", counts, longest)
		}
		if err := w.release(w.t.Context(), n, one); err != nil {
			w.t.Fatal(err)
		}
		counts, longest := w.summary()
		for phase, count := range counts {
			if count > 0 || longest > 0 {
				w.t.Errorf("phase %s: %d nodes, overdue %d s", phase, count, longest)
			}
		}
		if !slices.Equal(w.pods.forgotten, []string{"a"}) {
			w.t.Errorf("pods are watched: %q", w.pods.forgotten)
		}
	}, n)
}
