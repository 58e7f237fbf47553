package binding

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

func BenchmarkDecideClaim(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		for _, tc := range claimCases {
			DecideClaim(tc.state)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(claimCases)), "ns/decision")
}

func BenchmarkDecideVolume(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		for bits := range 32 {
			DecideVolume(VolumeState{ModesDiffer: bits&1 != 0, DynamicDelete: bits&2 != 0, Deleting: bits&4 != 0,
				Confirmed: bits&8 != 0, Scrubbed: bits&16 != 0})
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*32), "ns/decision")
}

func BenchmarkBoundStatus(b *testing.B) {
	claim, volume := waitingClaim("c", "1Gi"), freeVolume("v", "2Gi")
	b.ReportAllocs()
	for b.Loop() {
		if status := BoundStatus(claim, volume); status.Phase != v1.ClaimBound {
			b.Fatal(status)
		}
	}
}

func TestDecisionsAllocateNothing(t *testing.T) {
	state, volume := claimCases["bound pair is complete"].state, VolumeState{Confirmed: true}
	allocations := testing.AllocsPerRun(100, func() {
		_, _ = DecideClaim(state), DecideVolume(volume)
	})
	if allocations != 0 {
		t.Errorf("%v allocations", allocations)
	}
}
