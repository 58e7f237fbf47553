package external_test

import (
	"testing"

	. "github.com/exeunt-io/exeunt/pkg/reclaim/external"
)

func BenchmarkDecide(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		for _, tc := range decideCases {
			Decide(tc.state)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(decideCases)), "ns/decision")
}

func TestDecideAllocatesNothing(t *testing.T) {
	for name, tc := range decideCases {
		if allocations := testing.AllocsPerRun(10, func() { _ = Decide(tc.state) }); allocations != 0 {
			t.Errorf("%s: %v allocations", name, allocations)
		}
	}
}
