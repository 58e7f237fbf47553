package garbagecollector

import (
	"errors"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

// monitored is a collector of one kind, which has no watch.
type monitored struct {
	*monitor
	collector *Collector
}

func newMonitor() monitored {
	c := New(Config{Clock: clock.RealClock{}})
	return monitored{c.monitorOf("Pod", "pods"), c}
}

func metadataOf(name string, version int) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name),
		ResourceVersion: strconv.Itoa(version)}}
}

// A reflector collects the objects of a list in a store that has the transformer.
func TestListIsRecordedWhileItIsReceived(t *testing.T) {
	m := newMonitor()
	store := cache.NewStore(cache.DeletionHandlingMetaNamespaceKeyFunc, cache.WithTransformer(m.Transformer()))
	for i, name := range []string{"one", "two"} {
		if err := store.Add(metadataOf(name, i+1)); err != nil {
			t.Fatal(err)
		}
		if !m.graph.Has(types.UID(name)) || m.listed {
			t.Errorf("%s is in the graph: %v; listed: %v", name, m.graph.Has(types.UID(name)), m.listed)
		}
	}
	if err := store.Delete(metadataOf("two", 3)); err != nil {
		t.Fatal(err)
	}
	for _, object := range store.List() {
		if _, whole := object.(*metav1.PartialObjectMetadata); whole {
			t.Error("the store has the metadata beside the graph")
		}
	}
	if err := m.Replace(store.List(), "3"); err != nil {
		t.Fatal(err)
	}
	if !m.graph.Has("one") || m.graph.Has("two") || !m.listed || m.position != "3" {
		t.Errorf("one: %v, two, which is gone: %v, listed: %v up to %s", m.graph.Has("one"), m.graph.Has("two"), m.listed,
			m.position)
	}
}

// A client that lists pages hands over the metadata itself.
func TestPagedListIsRecorded(t *testing.T) {
	m := newMonitor()
	if err := m.Replace([]any{metadataOf("one", 1)}, "3"); err != nil || !m.graph.Has("one") {
		t.Errorf("Replace = %v, in the graph: %v", err, m.graph.Has("one"))
	}
	if m.Replace([]any{"text"}, "4") == nil {
		t.Error("a text was taken for metadata")
	}
}

func TestListOfReplacedMonitorIsNotRecorded(t *testing.T) {
	m := newMonitor()
	m.monitors[m.kind.GroupKind()] = &monitor{watches: m.watches, kind: m.kind}
	if _, err := m.Transformer()(metadataOf("one", 1)); err != nil || m.graph.Has("one") {
		t.Errorf("error %v, in the graph: %v", err, m.graph.Has("one"))
	}
}

// monitorOf serves a kind of the core group, and returns its monitor.
func (c *Collector) monitorOf(kind, resource string) *monitor {
	m := &monitor{watches: c.watches,
		kind: &graph.Kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: kind}, Resource: resource,
			Namespaced: true}}
	c.graph.Serve(m.kind)
	c.watches.monitors[m.kind.GroupKind()] = m
	return m
}

// A list that is being received must bring the references of a restored object, too: a barrier that passes after it
// releases the owner of these references.
func TestReceivedListBringsRestoredReferences(t *testing.T) {
	c := New(Config{Clock: clock.RealClock{}})
	owners, dependents := c.monitorOf("ConfigMap", "configmaps"), c.aggregatedMonitor()
	owner := metadataOf("owner", 400)
	owner.DeletionTimestamp, owner.Finalizers = &metav1.Time{Time: time.Unix(1, 0)},
		[]string{metav1.FinalizerOrphanDependents}
	restored := metadataOf("dependent", 450)
	restored.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: "owner"}}
	if err := errors.Join(owners.Replace([]any{owner}, "500"), dependents.Replace([]any{metadataOf("dependent", 590)},
		"1000")); err != nil {
		t.Fatal(err)
	}
	store := cache.NewStore(cache.DeletionHandlingMetaNamespaceKeyFunc, cache.WithTransformer(dependents.Transformer()))
	if err := errors.Join(store.Add(restored), store.Add(metadataOf("new", 510)),
		dependents.Replace(store.List(), "520")); err != nil {
		t.Fatal(err)
	}
	if waiting, found := c.graph.WaitingOwner("owner"); !found || waiting.Remaining != 1 {
		t.Errorf("waiting %+v, want one dependent", waiting)
	}
}

// A restored etcd may have a higher version than before, so that the list alone shows an object that was gone.
// etcd was restored, and the list of the dependents comes before that of their owner.
func TestListShowsDependentOfOwnerThatWasAbsent(t *testing.T) {
	for name, whole := range map[string]bool{"a list in pages": true, "a list that is being received": false} {
		t.Run(name, func(t *testing.T) {
			m := newMonitor()
			reference := []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "owner", UID: "owner"}}
			nodes := &graph.Kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Node"}, Resource: "nodes"}
			m.graph.Serve(nodes)
			first, second := metadataOf("first", 2), metadataOf("second", 1)
			first.OwnerReferences, second.OwnerReferences = reference, reference
			if err := m.Replace([]any{first}, "3"); err != nil {
				t.Fatal(err)
			}
			m.change(func(g *graph.Graph) {
				g.Deleted("owner", graph.Coordinates{GroupKind: nodes.GroupKind(), Name: "owner"})
			})
			if whole {
				if err := m.Replace([]any{first, second}, "9"); err != nil {
					t.Fatal(err)
				}
			} else if _, err := m.Transformer()(second); err != nil {
				t.Fatal(err)
			}
			if j, _ := m.judge("second"); j.State.Absent || !j.State.Unverified {
				t.Errorf("after the list: %+v", j.State)
			}
		})
	}
}

func TestListShowsObjectThatWasAbsent(t *testing.T) {
	for name, whole := range map[string]bool{"a list in pages": true, "a list that was received before": false} {
		t.Run(name, func(t *testing.T) {
			m := newMonitor()
			dependent := metadataOf("dependent", 2)
			dependent.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "owner", UID: "owner"}}
			if err := errors.Join(m.Add(metadataOf("owner", 1)), m.Add(dependent), m.Delete(metadataOf("owner", 3)),
				m.Add(metadataOf("owner", 1))); err != nil {
				t.Fatal(err)
			}
			if j, _ := m.judge("dependent"); j.State.Absent || !j.State.Unverified {
				t.Errorf("after an event that may be late: %+v", j.State)
			}
			list := []any{metadataOf("owner", 5), dependent}
			if !whole {
				store := cache.NewStore(cache.DeletionHandlingMetaNamespaceKeyFunc, cache.WithTransformer(m.Transformer()))
				if err := errors.Join(store.Add(list[0]), store.Add(list[1])); err != nil {
					t.Fatal(err)
				}
				list = store.List()
			}
			if err := m.Replace(list, "6"); err != nil {
				t.Fatal(err)
			}
			if j, _ := m.judge("dependent"); j.State.Absent || !j.State.Live {
				t.Errorf("after the list: %+v", j.State)
			}
		})
	}
}

// The watch may be behind a barrier, which has seen the definition that was created again.
func TestDefinitionCreatedAgainStaysKnown(t *testing.T) {
	c := New(Config{Clock: clock.RealClock{}})
	m := &monitor{watches: c.watches, kind: definitions}
	c.graph.Serve(m.kind)
	c.watches.monitors[m.kind.GroupKind()] = m
	definition := func(uid types.UID, version string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "widgets.g", UID: uid,
			ResourceVersion: version}}
	}
	if err := m.Add(definition("first", "50")); err != nil {
		t.Fatal(err)
	}
	m.position, m.reached = "90", "90"
	r := c.readsSince(definitions, "90")
	if err := r.record(definitions, "120", []metav1.PartialObjectMetadata{*definition("second", "113")}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(m.Delete(definition("first", "100")), m.Add(definition("second", "113"))); err != nil {
		t.Fatal(err)
	}
	if _, known := c.watches.definitions["widgets.g"]; !known {
		t.Error("the definition is forgotten")
	}
}
