package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/internal/sandbox"
)

// driverLease is the name that upstream's sidecar derives from the driver's.
const driverLease = "csimock-exeunt-io"

func TestAStandbyProvisionerTakesOverAtOnceWhenTheLeaderStops(t *testing.T) {
	t.Parallel()
	s := enter(t, private(t, setup{honor: true, bare: true}))
	flags := []string{"--leader-election", "--leader-election-labels=team:storage", "--leader-election-renew-deadline=4s", "--leader-election-retry-period=1s", "--enable-pprof"}
	first := s.startSidecar(s.driver, "provisioner-0", nil, flags...)
	holder := s.awaitLeader("")
	if message := s.awaitEvent(&metav1.ObjectMeta{Namespace: deploy.Namespace, Name: driverLease}, "LeaderElection"); !strings.Contains(message, holder) {
		t.Errorf("the event of the lease does not name %s: %s", holder, message)
	}
	second := s.startSidecar(s.driver, "provisioner-1", nil, flags...)

	s.createClaim("before", deleteClass)
	volume := s.awaitBound("before")
	s.awaitLog(second, "Filling caches")
	for _, process := range []*sandbox.Process{first, second} {
		if text, status := s.get(process, "/healthz/leader-election"); text != "ok" || status != http.StatusOK {
			t.Errorf("health of %s: %d %s", process.Name(), status, text)
		}
		if _, status := s.get(process, "/debug/pprof/cmdline"); status != http.StatusOK {
			t.Errorf("profiles of %s: %d", process.Name(), status)
		}
	}
	if s.logContains(second, `"Working"`) {
		t.Fatal("both work at once")
	}

	stopped := time.Now()
	s.stopSidecar(first)
	s.awaitLeader(holder)
	s.createClaim("after", deleteClass)
	s.awaitBound("after")
	if took := time.Since(stopped); took > 12*time.Second {
		t.Errorf("the hand-over took %s: the lease was not released, for it is valid for 15s", took)
	}
	s.deleteClaim("before")
	s.awaitVolumeGone(volume.Name)
	s.expectReclaimed(volume)

	s.giveLeaseAway()
	select {
	case <-second.Done():
	case <-s.ctx.Done():
		t.Fatal("the leader goes on without its lease")
	}
	if second.Err() == nil || !s.logContains(second, "the leader lease was lost") {
		t.Errorf("the leader ended with %v, want a failure that names the lease", second.Err())
	}
	s.forget(second)
}

// awaitLeader waits until somebody else than the one before holds the lease.
func (s *scene) awaitLeader(before string) string {
	s.t.Helper()
	source := cache.NewListWatchFromClient(s.client.CoordinationV1().RESTClient(), "leases", deploy.Namespace, fields.OneTermEqualSelector("metadata.name", driverLease))
	last, err := watchtools.UntilWithSync(s.ctx, source, &coordinationv1.Lease{}, nil, func(event watch.Event) (bool, error) {
		lease := event.Object.(*coordinationv1.Lease)
		holder := ptr.Deref(lease.Spec.HolderIdentity, "")
		return holder != "" && holder != before && lease.Labels["team"] == "storage", nil
	})
	s.must(err, fmt.Sprintf("wait until the lease is held by another one than %q", before))
	return ptr.Deref(last.Object.(*coordinationv1.Lease).Spec.HolderIdentity, "")
}

func (s *scene) giveLeaseAway() {
	s.t.Helper()
	leases := s.client.CoordinationV1().Leases(deploy.Namespace)
	s.must(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		lease, err := leases.Get(s.ctx, driverLease, metav1.GetOptions{})
		if err != nil {
			return err
		}
		lease.Spec.HolderIdentity = ptr.To("somebody else")
		lease.Spec.LeaseDurationSeconds = ptr.To[int32](3600)
		_, err = leases.Update(s.ctx, lease, metav1.UpdateOptions{})
		return err
	}), "take the lease")
}
