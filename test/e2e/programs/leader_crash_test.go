package programs

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// claimCount is the number of claims to bind, and of volumes to reclaim, while the leader
// is killed.
const claimCount = 500

func TestLeaderCrashDuringBindingAndReclaimLosesNothing(t *testing.T) {
	s := harness.Join(t, harness.Setup{LeaderElection: true, ShortLease: true}, harness.Within(5*harness.Timeout))
	history := s.RecordHistory()
	createMany(s, "old", claimCount)
	history.AwaitBound("old", claimCount)
	old := history.Volumes("old")

	var load errgroup.Group
	load.Go(func() error { createMany(s, "new", claimCount); return nil })
	load.Go(func() error { return deleteMany(s, "old", old) })
	history.AwaitBound("new", claimCount/10)
	leader := s.Leader()
	s.Must(leader.Kill(), "kill the leader")
	bound, gone := len(history.Volumes("new")), history.Gone(old)
	s.Must(load.Wait(), "load the cluster")
	t.Logf("killed %s with %d of %d claims bound and %d of %d volumes reclaimed", leader.Name(), bound, claimCount, gone,
		claimCount)
	if bound == claimCount || gone == claimCount {
		t.Error("the leader was killed too late to show anything")
	}

	history.AwaitBound("new", claimCount)
	s.AwaitManyGone(slices.Collect(maps.Values(old)))
	if again := s.Leader(); again.Name() == leader.Name() {
		t.Errorf("%s leads, although it was killed", again.Name())
	}
	history.ExpectNoRebinding()
	expectPairs(s, claimCount)
	expectNoLeak(s)
}

// createMany creates count claims NAME-*, 32 at a time.
func createMany(s *harness.Session, name string, count int) {
	s.T.Helper()
	var group errgroup.Group
	group.SetLimit(32)
	for i := range count {
		group.Go(func() error {
			_, err := s.Client.CoreV1().PersistentVolumeClaims(s.Namespace).
				Create(s.Ctx, s.NewClaim(fmt.Sprintf("%s-%d", name, i), harness.DeleteClass), metav1.CreateOptions{})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		s.T.Errorf("create claims: %v", err)
	}
}

// deleteMany deletes the claims NAME-*. For every second claim the volume is deleted first.
func deleteMany(s *harness.Session, name string, volumes map[string]string) error {
	var group errgroup.Group
	group.SetLimit(32)
	for i := range len(volumes) {
		claim := fmt.Sprintf("%s-%d", name, i)
		group.Go(func() error {
			if i%2 == 0 {
				if err := s.Client.CoreV1().PersistentVolumes().Delete(s.Ctx, volumes[claim], metav1.DeleteOptions{}); err != nil {
					return err
				}
			}
			return s.Client.CoreV1().PersistentVolumeClaims(s.Namespace).Delete(s.Ctx, claim, metav1.DeleteOptions{})
		})
	}
	return group.Wait()
}

// expectPairs checks that the namespace has count claims, each Bound to a volume that
// refers to the claim.
func expectPairs(s *harness.Session, count int) {
	s.T.Helper()
	claims, err := s.Client.CoreV1().PersistentVolumeClaims(s.Namespace).List(s.Ctx, metav1.ListOptions{})
	s.Must(err, "list claims")
	if len(claims.Items) != count {
		s.T.Errorf("there are %d claims, want %d", len(claims.Items), count)
	}
	volumes, err := s.Client.CoreV1().PersistentVolumes().List(s.Ctx, metav1.ListOptions{})
	s.Must(err, "list volumes")
	byClaim := map[types.UID][]string{}
	for _, volume := range volumes.Items {
		if ref := volume.Spec.ClaimRef; ref != nil && volume.Status.Phase == v1.VolumeBound {
			byClaim[ref.UID] = append(byClaim[ref.UID], volume.Name)
		}
	}
	for _, claim := range claims.Items {
		if got := byClaim[claim.UID]; claim.Status.Phase != v1.ClaimBound ||
			!slices.Equal(got, []string{claim.Spec.VolumeName}) {
			s.T.Errorf("claim %s is %s and names %s; volumes that refer to it: %v", claim.Name, claim.Status.Phase,
				claim.Spec.VolumeName, got)
		}
	}
}

// expectNoLeak checks that storage system and API server have the same volumes.
func expectNoLeak(s *harness.Session) {
	s.T.Helper()
	volumes, err := s.Client.CoreV1().PersistentVolumes().List(s.Ctx, metav1.ListOptions{})
	s.Must(err, "list volumes")
	known := sets.New[string]()
	for _, volume := range volumes.Items {
		known.Insert(harness.Handle(&volume))
	}
	stored := sets.New[string]()
	for page := ""; ; {
		list, err := s.StorageClient().ListVolumes(s.Ctx, &spec.ListVolumesRequest{StartingToken: page})
		s.Must(err, "list volumes of the storage system")
		for _, entry := range list.GetEntries() {
			stored.Insert(entry.GetVolume().GetVolumeId())
		}
		if page = list.GetNextToken(); page == "" {
			break
		}
	}
	if leaked, missing := stored.Difference(known), known.Difference(stored); leaked.Len()+missing.Len() > 0 {
		s.T.Errorf("%d volumes leaked: %v; %d are missing: %v", leaked.Len(), sets.List(leaked), missing.Len(),
			sets.List(missing))
	}
}
