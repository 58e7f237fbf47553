package graph_test

import (
	"fmt"
	"runtime"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// maxBytes is the aim for an object with one owner and a name of 40 characters.
const maxBytes = 400

func TestMemoryPerObject(t *testing.T) {
	if bytes := bytesPerObject(100_000); bytes > maxBytes {
		t.Errorf("%d bytes per object", bytes)
	}
}

// BenchmarkMillionObjects fills a graph with the dependents of one owner.
func BenchmarkMillionObjects(b *testing.B) {
	for b.Loop() {
		b.ReportMetric(float64(bytesPerObject(1_000_000)), "bytes/object")
	}
}

func bytesPerObject(count int) int {
	w := newWorld()
	w.observe(configMaps, "owner")
	before := heap()
	for i := range count {
		w.Observe(pods, decoded(i))
	}
	bytes := (heap() - before) / count
	runtime.KeepAlive(w)
	return bytes
}

func heap() int {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}

// decoded returns an object whose texts are its own, as a decoder returns it.
func decoded(i int) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("dependent-%030d", i), Namespace: fmt.Sprint("n", "s"),
		UID:             types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", i)),
		ResourceVersion: fmt.Sprint(1_000_000 + i),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: fmt.Sprint("v", 1), Kind: fmt.Sprint("Config", "Map"),
			Name: fmt.Sprint("own", "er"), UID: types.UID(fmt.Sprint("own", "er"))}},
	}}
}
