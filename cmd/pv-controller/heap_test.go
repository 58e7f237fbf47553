package main

import (
	"runtime"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/exeunt-io/exeunt/internal/heap"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/migration"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/metrics"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/pvcache"
	"github.com/exeunt-io/exeunt/test/boundpairs"
)

// BenchmarkStart fills the caches with 50,000 bound pairs and begins to lead: every object is
// counted and enqueued. It reports the heap that the process then has from the system, with the
// collector as the program sets it.
func BenchmarkStart(b *testing.B) {
	const pairs = 50_000
	heap.Pace()
	driver := func(int) string { return "csi.example.com" }
	for b.Loop() {
		caches, err := pvcache.Of(&pvcache.Caches{
			Claims: cache.NewSharedIndexInformer(boundpairs.Claims(pairs, driver), &v1.PersistentVolumeClaim{}, 0,
				cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}),
			Volumes: cache.NewSharedIndexInformer(boundpairs.Volumes(pairs, driver), &v1.PersistentVolume{}, 0,
				cache.Indexers{}),
			Pods: cache.NewSharedIndexInformer(boundpairs.None(&v1.Pod{}), &v1.Pod{}, 0, cache.Indexers{}),
			Classes: cache.NewSharedIndexInformer(boundpairs.None(&storagev1.StorageClass{}), &storagev1.StorageClass{}, 0,
				cache.Indexers{}),
		})
		if err != nil {
			b.Fatal(err)
		}
		controllers, err := pvcontroller.New(pvcontroller.Config{
			Clients: pvcontroller.OneClient(fake.NewClientset()), Caches: caches,
			Reporter: controller.NewReporter(&record.FakeRecorder{}),
			Plugins:  intree.NewSet(migration.New()), Operations: metrics.NewOperations(), Dynamic: true, Honor: true,
		})
		if err != nil {
			b.Fatal(err)
		}
		begin(b, caches, controllers)
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		b.ReportMetric(float64(stats.HeapSys)/1e6, "MB-heap-peak")
		runtime.KeepAlive(controllers)
	}
}

// begin runs the informers and registers all event handlers.
func begin(b *testing.B, caches *pvcache.Caches, controllers *pvcontroller.Controllers) {
	b.Helper()
	for _, informer := range []cache.SharedIndexInformer{caches.Claims, caches.Volumes, caches.Pods, caches.Classes} {
		go informer.RunWithContext(b.Context())
		if !cache.WaitForCacheSync(b.Context().Done(), informer.HasSynced) {
			b.Fatal("a cache did not sync")
		}
	}
	if err := metrics.NewCollector().Watch(b.Context(), caches.Volumes, caches.Claims); err != nil {
		b.Fatal(err)
	}
	if err := controllers.Watch(b.Context()); err != nil {
		b.Fatal(err)
	}
}
