package e2e

import (
	"context"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	snapshotclient "github.com/kubernetes-csi/external-snapshotter/client/v8/clientset/versioned"
	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
)

func cloneOf(source string) func(*v1.PersistentVolumeClaim) {
	return func(c *v1.PersistentVolumeClaim) {
		c.Spec.DataSource = &v1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: source}
	}
}

func TestASourceThatIsDeletedWhileItIsClonedStaysUntilTheCloneIsThere(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true, driver: "--faults=testdata/slow.yaml"}))
	s.createClaim("origin", deleteClass)
	origin := s.awaitBound("origin")
	s.createClaim("clone", deleteClass, cloneOf("origin"))
	s.awaitClaim("origin", "is protected", func(c *v1.PersistentVolumeClaim) bool { return finalizer.Has(c.Finalizers, finalizer.CloneSource) })
	s.deleteClaim("origin")
	s.awaitClaim("clone", "is bound", func(c *v1.PersistentVolumeClaim) bool {
		if c.Status.Phase == v1.ClaimBound {
			return true
		}
		if now, err := s.client.CoreV1().PersistentVolumeClaims(s.namespace).Get(s.ctx, "origin", metav1.GetOptions{}); err != nil || !finalizer.Has(now.Finalizers, finalizer.CloneSource) {
			t.Errorf("the source went before its clone was there: %v", err)
		}
		return false
	})
	if calls := s.calls("DeleteVolume", handle(origin)); calls != 0 && s.stored(handle(origin)) {
		t.Error("the source's volume was deleted too early")
	}
	s.awaitClaimGone("origin")
	s.awaitVolumeGone(origin.Name)
	s.expectReclaimed(origin)
}

func TestSnapshotsThatWereLeftProtectedAreLetGo(t *testing.T) {
	t.Parallel()
	s := enter(t, private(t, setup{honor: true, bare: true}))
	client := s.snapshots()
	s.createSnapshot(client, "orphan")
	s.createSnapshot(client, "needed")
	s.createClaim("waiting", deleteClass, fromSnapshot("needed")) // which nobody makes ready
	s.startSidecar(s.driver, "provisioner-0", nil, "--snapshot-orphan-sweep-interval=300ms")
	s.awaitSnapshot(client, "orphan", false)
	s.createSnapshot(client, "orphan-2") // the next sweep finds it
	s.awaitSnapshot(client, "orphan-2", false)
	s.awaitSnapshot(client, "needed", true)
	s.deleteClaim("waiting")
	s.awaitSnapshot(client, "needed", false)
}

// createSnapshot makes a snapshot that somebody protected who is gone.
func (s *scene) createSnapshot(client snapshotclient.Interface, name string) {
	s.t.Helper()
	content := "content-of-" + name
	_, err := client.SnapshotV1().VolumeSnapshots(s.namespace).Create(s.ctx, &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{"example.com/other", string(finalizer.SnapshotSource)}},
		Spec:       snapshotv1.VolumeSnapshotSpec{Source: snapshotv1.VolumeSnapshotSource{VolumeSnapshotContentName: &content}},
	}, metav1.CreateOptions{})
	s.must(err, "create snapshot")
}

// awaitSnapshot waits until the snapshot is protected or not.
func (s *scene) awaitSnapshot(client snapshotclient.Interface, name string, protected bool) {
	s.t.Helper()
	err := wait.PollUntilContextCancel(s.ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		now, err := client.SnapshotV1().VolumeSnapshots(s.namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, err
		}
		if err == nil && !finalizer.Has(now.Finalizers, "example.com/other") {
			s.t.Fatalf("a foreign finalizer of snapshot %s was taken off", name)
		}
		return err == nil && finalizer.Has(now.Finalizers, finalizer.SnapshotSource) == protected, nil
	})
	s.must(err, "wait for snapshot "+name)
}

// A namespace that is deleted has both deleted at once, and the process that asked for
// the clone may be gone by then.
func TestACloneThatWasBegunAndItsSourceDoNotHoldEachOther(t *testing.T) {
	t.Parallel()
	r := newRig(t, blow{fault: csimock.Fault{Code: codes.Unavailable, After: true}})
	r.createClaim("origin", r.className("plain"))
	origin := r.awaitBound("origin")
	clone := r.createClaim("clone", r.className("later"), cloneOf("origin"))
	begun := target{"CreateVolume", "pvc-" + string(clone.UID)}
	r.inject(0, begun)
	r.createClass("later")
	r.await("answered", begun)
	r.kill()
	r.deleteClaim("clone")
	r.deleteClaim("origin")
	r.start()
	r.awaitClaimGone("clone")
	r.awaitClaimGone("origin")
	r.awaitVolumeGone(origin.Name)
	r.awaitNoDifference()
	if left := r.driver.volumes(); len(left) > 0 {
		t.Errorf("the driver has %v", left)
	}
}
