// Package heap keeps the peak memory of programs with large caches low.
package heap

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// Until the next collection the heap may grow by growthPercent of what is live, and by minGrowth at
// least. Go's default of 100 percent makes the peak of a large cache a third higher; a small percentage of
// a small heap makes collections frequent.
const (
	growthPercent = 25
	minGrowth     = 8 << 20
)

// Pace sets how far the heap grows between collections, and sets it anew after each
// collection. It does nothing if the environment sets GOGC.
func Pace() {
	if os.Getenv("GOGC") == "" {
		(&pacer{percent: 100}).pace()
	}
}

// percentFor returns the growth in percent for so many live bytes.
func percentFor(live uint64) int {
	return int(max(growthPercent, 100*minGrowth/max(live, minGrowth/4)))
}

// pacer sets the growth in percent.
type pacer struct{ percent int }

// cycle becomes garbage at once: its cleanup runs after the next collection.
type cycle struct{ _ *byte }

func (p *pacer) pace() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	if percent := percentFor(live[0].Value.Uint64()); percent != p.percent {
		p.percent = percent
		debug.SetGCPercent(percent)
	}
	runtime.AddCleanup(new(cycle), func(p *pacer) { p.pace() }, p)
}
