package graph_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	. "github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

// dependents returns a graph with many dependents of one owner, and the dependents.
func dependents(b *testing.B) (*world, []*metav1.PartialObjectMetadata) {
	b.Helper()
	b.ReportAllocs()
	const count = 10_000
	w := newWorld()
	w.observe(configMaps, "owner")
	objects := make([]*metav1.PartialObjectMetadata, count)
	for i := range objects {
		objects[i] = decoded(i)
		w.Observe(pods, objects[i])
	}
	w.TakeChanged()
	return w, objects
}

// BenchmarkJudge judges a dependent of an owner that is gone.
func BenchmarkJudge(b *testing.B) {
	w, objects := dependents(b)
	w.Deleted("owner", Coordinates{configMaps.GroupKind(), "ns", "owner"})
	for i := 0; b.Loop(); i++ {
		if j, found := w.Judge(objects[i%len(objects)].UID, now); !found || !j.State.Absent {
			b.Fatal("the owner is not absent")
		}
	}
}

// BenchmarkObserveAndDelete records that a dependent appears and is gone.
func BenchmarkObserveAndDelete(b *testing.B) {
	w, objects := dependents(b)
	for i := 0; b.Loop(); i++ {
		o := objects[i%len(objects)]
		w.Deleted(o.UID, Coordinates{pods.GroupKind(), o.Namespace, o.Name})
		w.Observe(pods, o)
		w.TakeChanged()
	}
}

// BenchmarkOwnerDeleted records that an owner of many dependents is gone.
func BenchmarkOwnerDeleted(b *testing.B) {
	w, objects := dependents(b)
	for b.Loop() {
		w.Deleted("owner", Coordinates{configMaps.GroupKind(), "ns", "owner"})
		if changed := w.TakeChanged(); len(changed) != len(objects) {
			b.Fatalf("%d dependents are judged", len(changed))
		}
	}
}

// BenchmarkComponents searches for cycles below an owner that waits for many dependents.
func BenchmarkComponents(b *testing.B) {
	w, _ := dependents(b)
	w.observe(configMaps, "owner", deleted(metav1.FinalizerDeleteDependents))
	for b.Loop() {
		w.Components()
	}
}

// BenchmarkVanished compares a list with the graph.
func BenchmarkVanished(b *testing.B) {
	w, objects := dependents(b)
	present := map[types.UID]struct{}{}
	for _, o := range objects {
		present[o.UID] = struct{}{}
	}
	for b.Loop() {
		w.Vanished(pods, "9999999", present)
	}
}
