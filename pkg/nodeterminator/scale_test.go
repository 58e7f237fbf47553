package nodeterminator

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/nodeterminator/drain"
	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/termination/disruption"
)

// watchedPods are pods of nodes that live, each list of which takes a moment. Opened counts their watches.
type watchedPods struct {
	mu     sync.Mutex
	open   map[string]chan struct{}
	opened int
	blocks bool
	// hangs is a node whose pods cannot be listed.
	hangs  string
	notify func(node string)
}

// watchedNode is one node of them.
type watchedNode struct {
	scriptedPods
	all  *watchedPods
	sync chan struct{}
}

func (p *watchedPods) Pods(name string, _ types.UID) Pods {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[name] == nil {
		synced := make(chan struct{})
		p.open[name] = synced
		p.opened++
		if name != p.hangs {
			time.AfterFunc(10*time.Millisecond, func() {
				close(synced)
				p.notify(name)
			})
		}
	}
	return &watchedNode{all: p, sync: p.open[name]}
}

func (p *watchedPods) Forget(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, name)
}

// Look returns the one pod that blocks, or that no pod does, once pods were listed.
func (n *watchedNode) Look(time.Time) drain.Sight {
	select {
	case <-n.sync:
	default:
		return drain.Sight{Pending: true}
	}
	n.all.mu.Lock()
	defer n.all.mu.Unlock()
	if n.all.blocks {
		return drain.Sight{Known: true, Blocking: []termination.Left{{Pod: "ns/p"}}}
	}
	return drain.Sight{Known: true}
}

// drifts is a world with 300 drifted nodes, whose claims have no T, and one that ends. Reconciled counts.
type drifts struct {
	*disrupted
	pods       *watchedPods
	mu         sync.Mutex
	reconciled int
}

const driftedCount = 300

func inDrift(t *testing.T, blocks bool, test func(w *drifts)) {
	t.Helper()
	inDisrupted(t, nil, func(plain *disrupted) {
		w := &drifts{disrupted: plain}
		for _, name := range []string{"a", "b", "c"} {
			if err := errors.Join(w.Claims.informer.GetStore().Delete(w.Claims.named(name).Unstructured),
				w.caches.Nodes.GetStore().Delete(liveNode(name))); err != nil {
				t.Fatal(err)
			}
		}
		w.pods = &watchedPods{open: map[string]chan struct{}{}, blocks: blocks}
		w.Drainer = w.pods
		w.driftedNodes(driftedCount, nil)
		w.loop = controller.NewLoop("drifts", backoff, func(ctx context.Context, name string) error {
			w.mu.Lock()
			w.reconciled++
			w.mu.Unlock()
			return w.Reconcile(ctx, name)
		})
		w.pods.notify = func(name string) { w.Notify(name) }
		go w.loop.Run(w.ctx, 500)
		test(w)
	})
}

// all has all drifted nodes reconciled.
func (w *drifts) all() {
	for _, object := range w.caches.Nodes.GetStore().List() {
		if n := object.(*v1.Node); n.DeletionTimestamp == nil {
			w.Notify(n.Name)
		}
	}
}

// took returns how many watches of pods an act opens, and how often it has nodes reconciled.
func (w *drifts) took(act func()) (opened, reconciled int) {
	count := func() (int, int) {
		w.pods.mu.Lock()
		defer w.pods.mu.Unlock()
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.pods.opened, w.reconciled
	}
	opened, reconciled = count()
	act()
	<-time.After(time.Minute)
	synctest.Wait()
	nowOpened, nowReconciled := count()
	return nowOpened - opened, nowReconciled - reconciled
}

// end removes the node, as its watch does.
func (w *drifts) end(n *v1.Node) {
	if err := w.caches.Nodes.GetStore().Delete(n); err != nil {
		w.t.Error(err)
	}
	w.enqueueWaiting()
}

// An end of a node has nothing to tell nodes whose pods block: 300 watches were ended and opened again.
func TestEndOfNodeWakesNoNodeWithBlockingPods(t *testing.T) {
	inDrift(t, true, func(w *drifts) {
		if opened, _ := w.took(w.all); opened != driftedCount {
			w.t.Errorf("%d watches", opened)
		}
		ending := deletedNode("z", "30m", time.Now())
		w.cached(ending)
		if opened, _ := w.took(w.all); opened > 0 { // all nodes are told about a budget
			w.t.Errorf("%d watches were opened again", opened)
		}
		if opened, reconciled := w.took(func() { w.end(ending) }); opened > 0 || reconciled > 0 {
			w.t.Errorf("an end opens %d watches, and has %d nodes reconciled", opened, reconciled)
		}
		if got := w.disruptions.counts()[disruption.PodsBlock]; got != driftedCount {
			w.t.Errorf("%d nodes wait for their pods", got)
		}
	})
}

// One of the nodes whose pods may go takes the place; the others need not be looked at.
func TestEndOfNodeLooksAtOneNode(t *testing.T) {
	inDrift(t, false, func(w *drifts) {
		ending := deletedNode("z", "30m", time.Now())
		w.cached(ending)
		if opened, _ := w.took(w.all); opened > 0 {
			w.t.Errorf("%d watches though another node is being terminated", opened)
		}
		opened, reconciled := w.took(func() { w.end(ending) })
		if len(w.deleted()) != 1 {
			w.t.Errorf("deleted %q", w.deleted())
		}
		if opened > 2 || reconciled > 10 {
			w.t.Errorf("an end opens %d watches, and has %d nodes reconciled", opened, reconciled)
		}
	})
}

// Pods that cannot be listed keep no other node from going.
func TestNodeWithUnlistedPodsPassesItsPlaceOn(t *testing.T) {
	inDrift(t, false, func(w *drifts) {
		w.pods.hangs = "n000"
		if _, _ = w.took(w.all); len(w.deleted()) != 1 {
			w.t.Errorf("deleted %q", w.deleted())
		}
	})
}
