package pvcache

import (
	"runtime"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/test/boundpairs"
)

// filled returns caches with that many bound pairs, of ten drivers.
func filled(t testing.TB, pairs int) *Caches {
	t.Helper()
	drivers := []string{"a.csi.example.com", "b.csi.example.com", "c.csi.example.com"}
	driver := func(number int) string { return drivers[number%len(drivers)] }
	caches, err := Of(&Caches{
		Claims: cache.NewSharedIndexInformer(boundpairs.Claims(pairs, driver), &v1.PersistentVolumeClaim{}, 0,
			cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}),
		Volumes: cache.NewSharedIndexInformer(boundpairs.Volumes(pairs, driver), &v1.PersistentVolume{}, 0, cache.Indexers{}),
		Classes: cache.NewSharedIndexInformer(&cache.ListWatch{}, &storagev1.StorageClass{}, 0, cache.Indexers{}),
		Pods:    cache.NewSharedIndexInformer(&cache.ListWatch{}, &v1.Pod{}, 0, cache.Indexers{}),
	})
	if err != nil {
		t.Fatal(err)
	}
	go caches.Claims.RunWithContext(t.Context())
	go caches.Volumes.RunWithContext(t.Context())
	if !cache.WaitForCacheSync(t.Context().Done(), caches.Claims.HasSynced, caches.Volumes.HasSynced) {
		t.Fatal("caches did not sync")
	}
	return caches
}

func liveHeap() int {
	runtime.GC()
	runtime.GC() // the first one only empties sync.Pools
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}

// BenchmarkMemoryOfBoundPairs reports the memory of the caches per bound pair of a large cluster.
func BenchmarkMemoryOfBoundPairs(b *testing.B) {
	const pairs = 50_000
	for b.Loop() {
		before := liveHeap()
		caches := filled(b, pairs)
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		b.ReportMetric(float64(stats.HeapSys)/1e6, "MB-heap-peak")
		b.ReportMetric(float64(liveHeap()-before)/pairs, "bytes/pair")
		runtime.KeepAlive(caches)
	}
}

// TestBoundPairsAreSmall fails if the caches of a large cluster grow: 6,950 bytes a pair
// without [intern], 500 of them for indexes with a set for each value.
func TestBoundPairsAreSmall(t *testing.T) {
	const pairs, most = 10_000, 2_500
	before := liveHeap()
	caches := filled(t, pairs)
	if each := (liveHeap() - before) / pairs; each > most {
		t.Errorf("a bound pair takes %d bytes, want at most %d", each, most)
	} else {
		t.Logf("a bound pair takes %d bytes", each)
	}
	runtime.KeepAlive(caches)
}

func BenchmarkLookupsAmong200000Pairs(b *testing.B) {
	const pairs = 200_000
	caches := filled(b, pairs)
	claims := caches.Claims.GetStore().List()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		claim := claims[i%len(claims)].(*v1.PersistentVolumeClaim)
		if len(caches.VolumesOf(claim.Namespace+"/"+claim.Name)) != 1 ||
			len(caches.ClaimsNaming(claim.Spec.VolumeName)) != 1 {
			b.Fatal("not one volume and claim")
		}
	}
}
