package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/internal/sandbox"
)

func TestAStandbyTakesOverAtOnceWhenTheLeaderStops(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true, elected: true}))
	for i := range 2 {
		claim := fmt.Sprintf("claim-%d", i)
		s.createClaim(claim, deleteClass)
		s.awaitBound(claim)
		if i == 0 {
			s.must(s.leader().Stop(s.ctx), "stop the leader")
		}
	}
	s.expectToStopWithoutLease(s.leader())
}

// leader returns the replica that leads: the one that runs and works.
func (s *scene) leader() *sandbox.Process {
	s.t.Helper()
	for _, process := range s.processes {
		select {
		case <-process.Done():
			continue
		default:
		}
		if s.logContains(process, `"Working" logger="pv-controller"`) {
			return process
		}
	}
	s.t.Fatal("no replica leads")
	return nil
}

// expectToStopWithoutLease gives the lease to somebody else.
func (s *scene) expectToStopWithoutLease(leader *sandbox.Process) {
	s.t.Helper()
	leases := s.client.CoordinationV1().Leases(metav1.NamespaceSystem)
	lease, err := leases.Get(s.ctx, "pv-controller", metav1.GetOptions{})
	s.must(err, "read lease")
	lease.Spec.HolderIdentity = ptr.To("somebody else")
	lease.Spec.LeaseDurationSeconds = ptr.To[int32](3600)
	_, err = leases.Update(s.ctx, lease, metav1.UpdateOptions{})
	s.must(err, "take the lease")
	select {
	case <-leader.Done():
	case <-s.ctx.Done():
		s.t.Fatal("the leader goes on without its lease")
	}
	if leader.Err() == nil || !s.logContains(leader, "the leader lease was lost") {
		s.t.Errorf("the leader ended with %v, want a failure that names the lease", leader.Err())
	}
	s.forget(leader)
}

// BenchmarkHandOver measures how long nobody binds when the leader is stopped, as by
// a drain or an update, and when it is killed, so that its lease must run out:
//
//	go test ./test/e2e -run xxx -bench HandOver -benchtime 1x
func BenchmarkHandOver(b *testing.B) {
	for name, end := range map[string]func(context.Context, *sandbox.Process) error{
		"stopped": func(ctx context.Context, leader *sandbox.Process) error { return leader.Stop(ctx) },
		"killed":  func(_ context.Context, leader *sandbox.Process) error { return leader.Kill() },
	} {
		b.Run(name, func(b *testing.B) {
			c := shared(b, setup{honor: true, elected: true, alone: "hand-over " + name})
			for b.Loop() {
				s := enterFor(b, c, 2*patience)
				s.createClaim("before", deleteClass)
				s.awaitBound("before")
				start := time.Now()
				s.must(end(s.ctx, s.leader()), "end the leader")
				s.createClaim("after", deleteClass)
				s.awaitBound("after")
				b.ReportMetric(time.Since(start).Seconds(), "s/hand-over")
			}
		})
	}
}
