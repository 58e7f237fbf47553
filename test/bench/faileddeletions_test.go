package bench

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// BenchmarkNewClaimsDuringFailingDeletions measures the time from the
// creation of a claim until Bound, before and while a thousand deletions fail. Compare the
// two medians of one run only:
//
//	go test ./test/bench -run xxx -bench FailingDeletions -benchtime 1x
func BenchmarkNewClaimsDuringFailingDeletions(b *testing.B) {
	c := harness.OwnCluster(b, harness.Setup{})
	for b.Loop() {
		s := harness.NewSession(b, c, harness.Within(5*harness.Timeout))
		without := medianUntilBound(s, "before", 100)
		s.CreateUndeletableVolumes(1000)
		with := medianUntilBound(s, "beside", 100)
		b.ReportMetric(float64(without.Microseconds())/1000, "ms/claim-without")
		b.ReportMetric(float64(with.Microseconds())/1000, "ms/claim-with-1000-failing")
		b.ReportMetric(float64((with-without).Microseconds())/1000, "ms/delay")
	}
}

// medianUntilBound creates claims one after the other and returns the median time from
// the request until the watch reports Bound.
func medianUntilBound(s *harness.Session, name string, count int) time.Duration {
	s.T.Helper()
	history := s.RecordHistory()
	var times []time.Duration
	for i := range count {
		start := time.Now()
		s.CreateClaim(fmt.Sprintf("%s-%d", name, i), harness.DeleteClass)
		history.AwaitBound(name, i+1)
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	return times[len(times)/2]
}
