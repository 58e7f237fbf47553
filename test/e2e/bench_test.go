package e2e

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BenchmarkOursAndUpstream binds claims of one class and reclaims their volumes,
// PVs deleted first, with our pair of programs and with upstream's, whose client
// limits are lifted. Only the ratio of the two, taken in one run, says anything:
//
//	go test ./test/e2e -run xxx -bench OursAndUpstream -benchtime 1x
func BenchmarkOursAndUpstream(b *testing.B) {
	for name, how := range map[string]setup{
		"ours":     {honor: true},
		"upstream": {honor: true, upstreamLoops: true, upstreamSidecar: true},
	} {
		b.Run(name, func(b *testing.B) {
			c := shared(b, how)
			for b.Loop() {
				s := enter(b, c)
				start := time.Now()
				s.inParallel(benchmarkCrowd, func(i int) error {
					_, err := s.client.CoreV1().PersistentVolumeClaims(s.namespace).Create(s.ctx, s.newClaim(fmt.Sprint("claim-", i), deleteClass), metav1.CreateOptions{})
					return err
				})
				volumes := s.awaitCrowdBound(benchmarkCrowd)
				b.ReportMetric(benchmarkCrowd/time.Since(start).Seconds(), "bound/s")
				start = time.Now()
				s.inParallel(benchmarkCrowd, func(i int) error {
					return s.client.CoreV1().PersistentVolumes().Delete(s.ctx, volumes[i], metav1.DeleteOptions{})
				})
				s.inParallel(benchmarkCrowd, func(i int) error {
					return s.client.CoreV1().PersistentVolumeClaims(s.namespace).Delete(s.ctx, fmt.Sprint("claim-", i), metav1.DeleteOptions{})
				})
				s.awaitCrowdGone(volumes)
				b.ReportMetric(benchmarkCrowd/time.Since(start).Seconds(), "reclaimed/s")
			}
		})
	}
}

// benchmarkCrowd is how many volumes one round has.
const benchmarkCrowd = 1000

// inParallel calls f for every number below size, 64 at once.
func (s *scene) inParallel(size int, f func(i int) error) {
	s.t.Helper()
	var group errgroup.Group
	group.SetLimit(64)
	for i := range size {
		group.Go(func() error { return f(i) })
	}
	s.must(group.Wait(), "load the cluster")
}
