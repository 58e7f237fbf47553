package programs

import (
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// expectHealthy checks that the processes serve the health of the election and profiles.
func expectHealthy(s *harness.Session, processes ...*sandbox.Process) {
	s.T.Helper()
	for _, process := range processes {
		if text, status := s.HTTPGet(process, "/healthz/leader-election"); text != "ok" || status != http.StatusOK {
			s.T.Errorf("health of %s: %d %s", process.Name(), status, text)
		}
		if _, status := s.HTTPGet(process, "/debug/pprof/cmdline"); status != http.StatusOK {
			s.T.Errorf("profiles of %s: %d", process.Name(), status)
		}
	}
}

func TestStandbyProvisionerTakesOverAtOnce(t *testing.T) {
	t.Parallel()
	s := harness.Own(t, harness.Setup{NoProvisioner: true})
	flags := []string{"--leader-election", "--leader-election-labels=team:storage", "--leader-election-renew-deadline=4s",
		"--leader-election-retry-period=1s", "--enable-pprof"}
	first := s.StartProvisioner(s.Driver, "provisioner-0", nil, flags...)
	holder := s.AwaitLeader("")
	if message := s.AwaitEvent(&metav1.ObjectMeta{Namespace: deploy.Namespace, Name: harness.DriverLease},
		"LeaderElection"); !strings.Contains(message, holder) {
		t.Errorf("the event of the lease does not name %s: %s", holder, message)
	}
	second := s.StartProvisioner(s.Driver, "provisioner-1", nil, flags...)

	s.CreateClaim("before", harness.DeleteClass)
	volume := s.AwaitBound("before")
	s.AwaitLog(second, "Filling caches")
	expectHealthy(s, first, second)
	if s.LogContains(second, `"Working"`) {
		t.Fatal("both replicas lead at once")
	}

	stopped := time.Now()
	s.StopProvisioner(first)
	s.AwaitLeader(holder)
	s.CreateClaim("after", harness.DeleteClass)
	s.AwaitBound("after")
	if took := time.Since(stopped); took > 12*time.Second {
		t.Errorf("the hand-over took %s: the lease, valid for 15s, was not released", took)
	}
	s.DeleteClaim("before")
	s.AwaitVolumeGone(volume.Name)
	s.ExpectReclaimed(volume)

	giveLeaseAway(s)
	select {
	case <-second.Done():
	case <-s.Ctx.Done():
		t.Fatal("the leader did not end without its lease")
	}
	if second.Err() == nil || !s.LogContains(second, "the leader lease was lost") {
		t.Errorf("the leader ended with %v, want a failure that names the lease", second.Err())
	}
	s.ExpectEnd(second)
}

func giveLeaseAway(s *harness.Session) {
	s.T.Helper()
	leases := s.Client.CoordinationV1().Leases(deploy.Namespace)
	s.Must(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		lease, err := leases.Get(s.Ctx, harness.DriverLease, metav1.GetOptions{})
		if err != nil {
			return err
		}
		lease.Spec.HolderIdentity = ptr.To("another holder")
		lease.Spec.LeaseDurationSeconds = ptr.To[int32](3600)
		_, err = leases.Update(s.Ctx, lease, metav1.UpdateOptions{})
		return err
	}), "take the lease")
}
