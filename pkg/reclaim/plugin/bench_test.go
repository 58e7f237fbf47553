package plugin_test

import (
	"testing"

	. "github.com/exeunt-io/exeunt/pkg/reclaim/plugin"
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
