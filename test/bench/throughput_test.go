package bench

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// BenchmarkOursAndUpstream binds claims of one class and reclaims their volumes, volumes
// deleted first, with our programs and with upstream's without client limits. Compare the
// two results of one run only:
//
//	go test ./test/bench -run xxx -bench OursAndUpstream -benchtime 1x
func BenchmarkOursAndUpstream(b *testing.B) {
	for name, how := range map[string]harness.Setup{
		"ours":     {},
		"upstream": {UpstreamLoops: true, UpstreamSidecar: true},
	} {
		b.Run(name, func(b *testing.B) {
			c := harness.OwnCluster(b, how)
			for b.Loop() {
				s := harness.NewSession(b, c)
				start := time.Now()
				inParallel(s, claimCount, func(i int) error {
					_, err := s.Client.CoreV1().PersistentVolumeClaims(s.Namespace).Create(s.Ctx, s.NewClaim(fmt.Sprint("claim-", i), harness.DeleteClass), metav1.CreateOptions{})
					return err
				})
				volumes := s.AwaitManyBound(claimCount)
				b.ReportMetric(claimCount/time.Since(start).Seconds(), "bound/s")
				start = time.Now()
				inParallel(s, claimCount, func(i int) error {
					return s.Client.CoreV1().PersistentVolumes().Delete(s.Ctx, volumes[i], metav1.DeleteOptions{})
				})
				inParallel(s, claimCount, func(i int) error {
					return s.Client.CoreV1().PersistentVolumeClaims(s.Namespace).Delete(s.Ctx, fmt.Sprint("claim-", i), metav1.DeleteOptions{})
				})
				s.AwaitManyGone(volumes)
				b.ReportMetric(claimCount/time.Since(start).Seconds(), "reclaimed/s")
			}
		})
	}
}

// claimCount is the number of volumes of a round.
const claimCount = 1000

// inParallel calls f for every number below size, 64 at once.
func inParallel(s *harness.Session, size int, f func(i int) error) {
	s.T.Helper()
	var group errgroup.Group
	group.SetLimit(64)
	for i := range size {
		group.Go(func() error { return f(i) })
	}
	s.Must(group.Wait(), "load the cluster")
}
