package heap

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

func TestGrowthFollowsLiveHeap(t *testing.T) {
	for live, want := range map[uint64]int{0: 400, 2 << 20: 400, 8 << 20: 100, 16 << 20: 50, 32 << 20: 25, 1 << 30: 25} {
		if got := percentFor(live); got != want {
			t.Errorf("%d live bytes: %d percent, want %d", live, got, want)
		}
	}
}

func percentNow() uint64 {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// awaitPercent collects garbage until the growth in percent is as wanted.
func awaitPercent(t *testing.T, wanted func(percent uint64) bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !wanted(percentNow()); runtime.GC() {
		if time.Now().After(end) {
			t.Fatalf("the growth stays at %d percent", percentNow())
		}
	}
}

func TestCollectorIsPacedAfterEachCollection(t *testing.T) {
	before := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	t.Setenv("GOGC", "200") // Go itself reads it, at the start only
	Pace()
	if got := percentNow(); got != 100 {
		t.Errorf("GOGC=200: changed to %d percent", got)
	}
	t.Setenv("GOGC", "")
	Pace()
	large := make([]byte, 128<<20)
	awaitPercent(t, func(percent uint64) bool { return percent == growthPercent })
	runtime.KeepAlive(large)
	awaitPercent(t, func(percent uint64) bool { return percent > growthPercent })
}
