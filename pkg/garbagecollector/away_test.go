package garbagecollector

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/exeunt-io/exeunt/pkg/garbage/barrier"
	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

var secrets = &graph.Kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, Resource: "secrets",
	Namespaced: true, Collected: true}

// leavingReads are the reads of an API server that answers one list of ConfigMaps, is away for a time, and answers
// again. Its other lists have one dependent.
type leavingReads struct {
	metadata.Interface
	left, back time.Time
	dependent  metav1.ObjectMeta
}

func (r *leavingReads) Resource(resource schema.GroupVersionResource) metadata.Getter {
	return leavingRead{leavingReads: r, resource: resource.Resource}
}

type leavingRead struct {
	metadata.Getter
	*leavingReads
	resource string
}

func (r leavingRead) Namespace(string) metadata.ResourceInterface { return r }

func (r leavingRead) List(context.Context, metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	now := time.Now()
	if !now.Before(r.left) && now.Before(r.back) && (r.resource != configMaps.Resource || !now.Equal(r.left)) {
		return nil, errors.New("connection refused")
	}
	list := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
	if r.resource != configMaps.Resource {
		list.Items = []metav1.PartialObjectMetadata{*partial(r.dependent)}
	}
	return list, nil
}

// The API server goes away once a barrier has read one kind, for longer than --unreadable-kind-timeout.
func TestBarrierAwaitsAPIServerThatLeft(t *testing.T) {
	for name, away := range map[string]time.Duration{"until the limit": 10 * time.Second,
		"shorter": 9500 * time.Millisecond, "longer": 25 * time.Second, "a moment": time.Millisecond} {
		for excused, unread := range map[string][]*graph.Kind{"": nil,
			", the former barrier passed without the kind": {services}} {
			t.Run(name+excused, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					client := &leavingReads{left: time.Now(), back: time.Now().Add(away),
						dependent: configMap("dependent", "6", "owner")}
					c := New(Config{Clock: clock.RealClock{}, Barriers: client, UnreadableAfter: 10 * time.Second,
						Recorder: record.NewFakeRecorder(10)})
					defer c.worker.queue.ShutDown()
					for _, kind := range []*graph.Kind{configMaps, secrets} {
						c.graph.Serve(kind)
						c.watches.monitors[kind.GroupKind()] = &monitor{watches: c.watches, kind: kind}
					}
					c.barriers.unread = unread
					c.observe(terminating(configMap("owner", "1"), metav1.FinalizerDeleteDependents))
					c.barriers.await([]types.UID{"owner"})
					c.barriers.runBarrier(t.Context(), c.barriers.takePending())
					if !c.graph.HasPassed("owner", time.Now()) || !c.graph.Has("dependent") || len(c.barriers.unread) > 0 {
						t.Errorf("passed %v without having read the dependent, unread %v, after %v",
							c.graph.HasPassed("owner", time.Now()), c.barriers.unread, time.Since(client.left))
					}
				})
			})
		}
	}
}

// Discovery fails because the API server is away, although all known kinds were read.
func TestBarrierAwaitsDiscoveryWhileAPIServerIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &leavingReads{left: time.Now(), back: time.Now().Add(25 * time.Second)}
		discovery := &fakeDiscovery{}
		discovery.serveWidgets("v1", true)
		discovery.called = func() {
			discovery.err = nil
			if time.Now().Before(client.back) {
				discovery.err = errors.New("connection refused")
			}
		}
		c := New(Config{Clock: clock.RealClock{}, Barriers: client, Discovery: discovery, UnreadableAfter: 10 * time.Second,
			Recorder: record.NewFakeRecorder(10)})
		defer c.worker.queue.ShutDown()
		c.graph.Serve(configMaps)
		c.watches.monitors[configMaps.GroupKind()] = &monitor{watches: c.watches, kind: configMaps}
		c.watches.outdated = true
		run := barrier.Begin[*graph.Kind](c.barriers.unreadableAfter)
		c.watches.run = run
		r := c.barriers.newReads(run, "")
		r.add(func(kind *graph.Kind) bool { return kind == configMaps })
		ctx, stop := context.WithTimeout(t.Context(), 24*time.Second)
		defer stop()
		if result, _ := c.barriers.follow(ctx, r); result != barrier.Running {
			t.Errorf("the barrier ends with %v", result)
		}
		stop()
		r.running.Wait()
	})
}

// An aggregated API server that does not answer is no reason to wait, while the API server of Kubernetes answers.
func TestBarrierPassesWithoutAggregatedKindAfterLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		widgets, _ := aggregatedWidgets()
		client := &refusingReads{refused: widgets.Resource}
		c := New(Config{Clock: clock.RealClock{}, Barriers: client, UnreadableAfter: 10 * time.Second,
			Recorder: record.NewFakeRecorder(10)})
		defer c.worker.queue.ShutDown()
		for _, kind := range []*graph.Kind{configMaps, widgets} {
			c.graph.Serve(kind)
			c.watches.monitors[kind.GroupKind()] = &monitor{watches: c.watches, kind: kind}
		}
		for _, want := range []time.Duration{10 * time.Second, 0} {
			c.barriers.runBarrier(t.Context(), nil)
			if took := time.Since(began); took != want || !slices.Equal(c.barriers.unread, []*graph.Kind{widgets}) {
				t.Errorf("after %v instead of %v, unread %v", took, want, c.barriers.unread)
			}
			began = time.Now()
		}
		if checks := client.lists[configMaps.Resource]; checks > 15 {
			t.Errorf("%d reads of a kind that can be read", checks)
		}
	})
}

// refusingReads answer every list but those of one resource, and count them.
type refusingReads struct {
	metadata.Interface
	refused string
	lists   map[string]int
}

func (r *refusingReads) Resource(resource schema.GroupVersionResource) metadata.Getter {
	return refusingRead{refusingReads: r, resource: resource.Resource}
}

type refusingRead struct {
	metadata.Getter
	*refusingReads
	resource string
}

func (r refusingRead) Namespace(string) metadata.ResourceInterface { return r }

func (r refusingRead) List(context.Context, metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	if r.resource == r.refused {
		return nil, errors.New("no endpoints available for service")
	}
	if r.lists == nil {
		r.lists = map[string]int{}
	}
	r.lists[r.resource]++
	return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}, nil
}
