package protection_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/protection"
)

func BenchmarkDecide(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		for bits := range 16 {
			protection.DecideClaim(protection.ClaimState{Deleting: bits&1 != 0, Protected: bits&2 != 0, Used: bits&4 != 0,
				Confirmed: bits&8 != 0})
			protection.DecideVolume(protection.VolumeState{Deleting: bits&1 != 0, Protected: bits&2 != 0, Bound: bits&4 != 0,
				AwaitsReclaim: bits&8 != 0})
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*32), "ns/decision")
}

// BenchmarkClaimNames reads the claims of a pod with ten volumes, two of them claims.
func BenchmarkClaimNames(b *testing.B) {
	pod := &v1.Pod{}
	for i := range 10 {
		volume := v1.Volume{Name: fmt.Sprint("volume-", i)}
		if i%5 == 0 {
			volume.PersistentVolumeClaim = &v1.PersistentVolumeClaimVolumeSource{ClaimName: fmt.Sprint("claim-", i)}
		}
		pod.Spec.Volumes = append(pod.Spec.Volumes, volume)
	}
	b.ReportAllocs()
	for b.Loop() {
		if names := protection.ClaimNames(pod); len(names) != 2 {
			b.Fatal(names)
		}
	}
}
