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

// newMonitor returns the monitor of a kind, without a watch.
func newMonitor() *monitor {
	m := &monitor{Collector: New(Config{Clock: clock.RealClock{}}), kind: &graph.Kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Resource: "pods", Namespaced: true}}
	m.graph.Serve(m.kind)
	m.monitors[m.kind.GroupKind()] = m
	return m
}

func metadataOf(name string, version int) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), ResourceVersion: strconv.Itoa(version)}}
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
		t.Errorf("one: %v, two, which is gone: %v, listed: %v up to %s", m.graph.Has("one"), m.graph.Has("two"), m.listed, m.position)
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
	m.monitors[m.kind.GroupKind()] = &monitor{Collector: m.Collector, kind: m.kind}
	if _, err := m.Transformer()(metadataOf("one", 1)); err != nil || m.graph.Has("one") {
		t.Errorf("error %v, in the graph: %v", err, m.graph.Has("one"))
	}
}

// After etcd was restored, every kind that is listed again forgets the versions of before, not only the first.
func TestEveryKindIsRewound(t *testing.T) {
	c := New(Config{Clock: clock.RealClock{}})
	monitorOf := func(kind, resource string) *monitor {
		m := &monitor{Collector: c, kind: &graph.Kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: kind}, Resource: resource, Namespaced: true}}
		c.graph.Serve(m.kind)
		c.monitors[m.kind.GroupKind()] = m
		return m
	}
	first, second := monitorOf("Pod", "pods"), monitorOf("Secret", "secrets")
	before := metadataOf("two", 900)
	if err := errors.Join(first.Replace(nil, "1000"), second.Replace([]any{before}, "1000")); err != nil {
		t.Fatal(err)
	}
	restored := metadataOf("two", 450)
	restored.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	restored.Finalizers = []string{metav1.FinalizerDeleteDependents}
	if err := errors.Join(first.Replace(nil, "510"), second.Replace([]any{restored}, "511")); err != nil {
		t.Fatal(err)
	}
	if _, waits := c.graph.WaitingOwner("two"); !waits {
		t.Error("the restored version of the object is ignored")
	}
}

// The watch may be behind a barrier, which has seen the definition that was created again.
func TestDefinitionCreatedAgainStaysKnown(t *testing.T) {
	c := New(Config{Clock: clock.RealClock{}})
	m := &monitor{Collector: c, kind: definitions}
	c.graph.Serve(m.kind)
	c.monitors[m.kind.GroupKind()] = m
	definition := func(uid types.UID, version string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "widgets.g", UID: uid, ResourceVersion: version}}
	}
	if err := m.Add(definition("first", "50")); err != nil {
		t.Fatal(err)
	}
	m.position, m.reached = "90", "90"
	r := &reads{Collector: c}
	if err := r.record(definitions, "120", []metav1.PartialObjectMetadata{*definition("second", "113")}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(m.Delete(definition("first", "100")), m.Add(definition("second", "113"))); err != nil {
		t.Fatal(err)
	}
	if _, known := c.definitions["widgets.g"]; !known {
		t.Error("the definition is forgotten")
	}
}
