package garbagecollector

import (
	"strconv"
	"testing"

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
