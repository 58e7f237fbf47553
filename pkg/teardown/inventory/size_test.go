package inventory_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/exeunt-io/exeunt/pkg/teardown/inventory"
	"github.com/exeunt-io/exeunt/test/boundpairs"
)

// BenchmarkInventory judges 50,000 volumes with claims and pods, and reports the memory that stays in use.
func BenchmarkInventory(b *testing.B) {
	const pairs = 50_000
	for b.Loop() {
		i := inventory.New(inventory.Options{})
		for number := range pairs {
			i.Set(boundpairs.DecodedClaim(number, "csi.example.com"))
		}
		for number := range pairs {
			i.Set(boundpairs.DecodedVolume(number, "csi.example.com"))
		}
		for number := range pairs {
			i.Set(boundpairs.DecodedPod(number))
		}
		b.ReportMetric(inUse(), "MB-facts")
		now := time.Now()
		if items := i.Items(now); len(items) != pairs {
			b.Fatal(len(items))
		}
		b.ReportMetric(inUse(), "MB-facts-and-view")
		b.ReportMetric(time.Since(now).Seconds(), "s-judged")
		runtime.KeepAlive(i)
	}
}

func inUse() float64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc) / 1e6
}
