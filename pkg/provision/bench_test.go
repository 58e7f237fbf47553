package provision_test

import (
	"testing"

	. "github.com/exeunt-io/exeunt/pkg/provision"
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
	if allocations := testing.AllocsPerRun(100, func() { Decide(callReady) }); allocations != 0 {
		t.Errorf("%v allocations", allocations)
	}
}
