package bench

import (
	"context"
	"testing"
	"time"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// BenchmarkHandOver measures the time without a leader after the leader was stopped, as by
// a drain or an update, and after it was killed, so that its lease must expire:
//
//	go test ./test/bench -run xxx -bench HandOver -benchtime 1x
func BenchmarkHandOver(b *testing.B) {
	for name, end := range map[string]func(context.Context, *sandbox.Process) error{
		"stopped": func(ctx context.Context, leader *sandbox.Process) error { return leader.Stop(ctx) },
		"killed":  func(_ context.Context, leader *sandbox.Process) error { return leader.Kill() },
	} {
		b.Run(name, func(b *testing.B) {
			c := harness.OwnCluster(b, harness.Setup{LeaderElection: true})
			for b.Loop() {
				s := harness.NewSession(b, c, harness.Within(2*harness.Timeout))
				s.CreateClaim("before", harness.DeleteClass)
				s.AwaitBound("before")
				start := time.Now()
				s.Must(end(s.Ctx, s.Leader()), "end the leader")
				s.CreateClaim("after", harness.DeleteClass)
				s.AwaitBound("after")
				b.ReportMetric(time.Since(start).Seconds(), "s/hand-over")
			}
		})
	}
}
