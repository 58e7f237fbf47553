package garbagecollector

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"

	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

// ownerReads read an owner that lives until it is gone, and count the reads.
type ownerReads struct {
	metadata.Interface
	reads atomic.Int32
	gone  atomic.Bool
}

func (r *ownerReads) Resource(schema.GroupVersionResource) metadata.Getter {
	return ownerRead{ownerReads: r}
}

type ownerRead struct {
	metadata.Getter
	*ownerReads
}

func (r ownerRead) Namespace(string) metadata.ResourceInterface { return r }

func (r ownerRead) Get(_ context.Context, name string, _ metav1.GetOptions,
	_ ...string) (*metav1.PartialObjectMetadata, error) {
	r.reads.Add(1)
	if r.gone.Load() {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: configMaps.Resource}, name)
	}
	return partial(configMap(name, "1")), nil
}

// The kind of the owner is not collected, so that no event says when the owner is gone. All dependents share the
// reads of it, which become rare.
func TestOwnerOutsideGraphIsReadOnceForAllDependents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const dependents = 50
		reads := &ownerReads{}
		c := New(Config{Clock: clock.RealClock{}, Reads: reads, DryRun: true})
		ctx, stop := context.WithCancel(t.Context())
		c.watches.monitoring.StartWithContext(ctx, c.worker.run)
		defer func() { stop(); c.worker.queue.ShutDown(); c.watches.monitoring.Wait() }()
		c.change(func(g *graph.Graph) { g.Serve(configMaps) })
		c.begin()
		for i := range dependents {
			c.observe(configMap("dependent-"+strconv.Itoa(i), "5", "owner"))
			<-time.After(1100 * time.Millisecond)
		}
		<-time.After(time.Hour - dependents*1100*time.Millisecond)
		if got := reads.reads.Load(); got < 10 || got > 30 {
			t.Errorf("%d reads of the owner in an hour", got)
		}
		reads.gone.Store(true)
		<-time.After(6 * time.Minute)
		c.mu.Lock()
		defer c.mu.Unlock()
		for i := range dependents {
			if j, _ := c.graph.Judge("dependent-"+configMap(strconv.Itoa(i), "").UID, c.clock.Now()); !j.State.Absent ||
				!j.State.Sent {
				t.Fatalf("%+v after the owner was gone for six minutes", j.State)
			}
		}
	})
}

// A dependent that comes later is judged by a read of its own time, if that may have another result.
func TestOwnerOutsideGraphThatIsGoneIsFoundSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads := &ownerReads{}
		c := New(Config{Clock: clock.RealClock{}, Reads: reads, DryRun: true})
		defer c.worker.queue.ShutDown()
		c.change(func(g *graph.Graph) { g.Serve(configMaps) })
		c.observe(configMap("dependent", "5", "owner"))
		if err := c.worker.reconcile(t.Context(), "dependent"); err != nil {
			t.Fatal(err)
		}
		reads.gone.Store(true)
		<-time.After(10 * time.Second)
		if err := c.worker.reconcile(t.Context(), "dependent"); err != nil {
			t.Fatal(err)
		}
		if j, _ := c.judge("dependent"); !j.State.Sent || reads.reads.Load() != 2 {
			t.Errorf("%+v after %d reads", j.State, reads.reads.Load())
		}
	})
}
