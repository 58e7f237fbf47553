package garbagecollector

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

// awaitingReads answers a list of definitions once pods were listed. Each list is empty.
type awaitingReads struct {
	metadata.Interface
	once            sync.Once
	podsRead        chan struct{}
	definitionsRead atomic.Bool
}

// Resource returns the reads of the resource.
func (r *awaitingReads) Resource(resource schema.GroupVersionResource) metadata.Getter {
	return awaitingRead{all: r, resource: resource.Resource}
}

type awaitingRead struct {
	metadata.Getter
	all      *awaitingReads
	resource string
}

// Namespace returns the same reads.
func (r awaitingRead) Namespace(string) metadata.ResourceInterface { return r }

// List returns an empty list.
func (r awaitingRead) List(ctx context.Context, _ metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	switch r.resource {
	case "pods":
		r.all.once.Do(func() { close(r.all.podsRead) })
	case definitions.Resource:
		select {
		case <-r.all.podsRead:
			r.all.definitionsRead.Store(true)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}, nil
}

// The definitions of kinds and the known kinds are read at the same time: a quiet kind of each
// makes a barrier wait for its watch.
func TestKnownKindsAreReadBesideDefinitions(t *testing.T) {
	client := &awaitingReads{podsRead: make(chan struct{})}
	c := New(Config{Clock: clock.RealClock{}, Barriers: client, UnreadableAfter: time.Minute})
	for _, kind := range []*graph.Kind{
		{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Resource: "pods", Namespaced: true},
		definitions, services,
	} {
		c.graph.Serve(kind)
		c.watches.monitors[kind.GroupKind()] = &monitor{watches: c.watches, kind: kind}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c.barriers.runBarrier(ctx, map[types.UID]deletion{"owner": {namespace: "ns"}})
	if ctx.Err() != nil || !client.definitionsRead.Load() {
		t.Errorf("the barrier ended: %v, definitions read: %v", ctx.Err() == nil, client.definitionsRead.Load())
	}
}

// Dependents may ask for the barrier of their owner again before they are judged by its result.
func TestPassedDeletionNeedsNoSecondBarrier(t *testing.T) {
	c := New(Config{Clock: clock.RealClock{}})
	c.change(func(g *graph.Graph) { g.Serve(configMaps) })
	c.observe(terminating(configMap("owner", "1"), metav1.FinalizerDeleteDependents))
	c.barriers.await([]types.UID{"owner"})
	c.barriers.passes.pass(c.barriers.takePending())
	c.barriers.await([]types.UID{"owner"})
	if owners := c.barriers.takePending(); len(owners) > 0 {
		t.Errorf("a barrier for %v", owners)
	}
	c.observe(terminating(configMap("owner", "2"), metav1.FinalizerOrphanDependents))
	c.barriers.await([]types.UID{"owner"})
	if owners := c.barriers.takePending(); len(owners) != 1 {
		t.Error("no barrier after the policy was changed")
	}
}

func TestUnreadKindIsReadAgainWithoutDeletions(t *testing.T) {
	client := &awaitingReads{podsRead: make(chan struct{})}
	fake := clocktesting.NewFakeClock(time.Unix(0, 0))
	c := New(Config{Clock: fake, Barriers: client, UnreadableAfter: time.Hour})
	if c.barriers.dueForUnread() != nil {
		t.Error("a barrier is due although all kinds were read")
	}
	c.graph.Serve(configMaps)
	c.watches.monitors[configMaps.GroupKind()] = &monitor{watches: c.watches, kind: configMaps, listed: true}
	c.barriers.unread = []*graph.Kind{configMaps}
	due := c.barriers.dueForUnread()
	fake.Step(unreadRecheck - 1)
	select {
	case <-due:
		t.Error("the barrier is due too early")
	default:
	}
	ctx, stop := context.WithCancel(t.Context())
	c.watches.monitoring.StartWithContext(ctx, c.barriers.run)
	eventually(t, "the kind is read", func() bool {
		fake.Step(unreadRecheck)
		return len(c.barriers.unreadKinds()) == 0
	})
	stop()
	c.watches.monitoring.Wait()
}

// pagedReads answers each first page of definitions with the promise of others. Other kinds are empty; their reads wait
// until so many are under way.
type pagedReads struct {
	metadata.Interface
	atOnce  int
	started atomic.Int64
	enough  chan struct{}
}

// Resource returns the reads of the resource.
func (r *pagedReads) Resource(resource schema.GroupVersionResource) metadata.Getter {
	return pagedRead{all: r, resource: resource.Resource}
}

type pagedRead struct {
	metadata.Getter
	all      *pagedReads
	resource string
}

// Namespace returns the same reads.
func (r pagedRead) Namespace(string) metadata.ResourceInterface { return r }

// List returns one page.
func (r pagedRead) List(ctx context.Context, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	list := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
	if r.resource == definitions.Resource {
		if options.Continue == "" {
			list.Continue = "others"
		}
		return list, nil
	}
	if int(r.all.started.Add(1)) == r.all.atOnce {
		close(r.all.enough)
	}
	select {
	case <-r.all.enough:
		return list, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// runPaged runs a barrier over kinds without objects, and definitions whose watch stands still, and reports whether
// it ended although no time passes.
func runPaged(t *testing.T, kinds, atOnce int) bool {
	t.Helper()
	client := &pagedReads{atOnce: atOnce, enough: make(chan struct{})}
	c := New(Config{Clock: clocktesting.NewFakeClock(time.Unix(0, 0)), Barriers: client, UnreadableAfter: time.Minute})
	served := []*graph.Kind{definitions}
	for i := range kinds {
		name := fmt.Sprintf("widget%d", i)
		served = append(served, &graph.Kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: name},
			Resource: name, Namespaced: true})
	}
	for _, kind := range served {
		c.graph.Serve(kind)
		c.watches.monitors[kind.GroupKind()] = &monitor{watches: c.watches, kind: kind, position: "5", reached: "5"}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	c.barriers.runBarrier(ctx, map[types.UID]deletion{"owner": {namespace: "ns"}})
	return ctx.Err() == nil
}

// Nobody changes definitions, so that waiting for their watch is in vain, and all other kinds wait meanwhile.
func TestBarrierDoesNotAwaitWatchOfDefinitions(t *testing.T) {
	if !runPaged(t, 1, 1) {
		t.Error("the barrier waits for the watch of definitions of which there are many")
	}
}

func TestBarrierReadsManyKindsAtOnce(t *testing.T) {
	if !runPaged(t, 60, 30) {
		t.Error("fewer than 30 kinds are read at once")
	}
}
