package programs

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

func TestStandbyPVControllerTakesOverAtOnce(t *testing.T) {
	s := harness.Join(t, harness.Setup{LeaderElection: true})
	for i := range 2 {
		claim := fmt.Sprintf("claim-%d", i)
		s.CreateClaim(claim, harness.DeleteClass)
		s.AwaitBound(claim)
		if i == 0 {
			s.Must(s.Leader().Stop(s.Ctx), "stop the leader")
		}
	}
	expectToStopWithoutLease(s, s.Leader())
}

// expectToStopWithoutLease gives the lease to another holder and waits until the leader ends.
func expectToStopWithoutLease(s *harness.Session, leader *sandbox.Process) {
	s.T.Helper()
	leases := s.Client.CoordinationV1().Leases(metav1.NamespaceSystem)
	lease, err := leases.Get(s.Ctx, "pv-controller", metav1.GetOptions{})
	s.Must(err, "read lease")
	lease.Spec.HolderIdentity = ptr.To("another holder")
	lease.Spec.LeaseDurationSeconds = ptr.To[int32](3600)
	_, err = leases.Update(s.Ctx, lease, metav1.UpdateOptions{})
	s.Must(err, "take the lease")
	select {
	case <-leader.Done():
	case <-s.Ctx.Done():
		s.T.Fatal("the leader did not end without its lease")
	}
	if leader.Err() == nil || !s.LogContains(leader, "the leader lease was lost") {
		s.T.Errorf("the leader ended with %v, want a failure that names the lease", leader.Err())
	}
	s.ExpectEnd(leader)
}
