package teardown

import (
	"context"
	"slices"
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	snapshotclient "github.com/kubernetes-csi/external-snapshotter/client/v8/clientset/versioned"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// snapshotClient returns a client of the snapshot API.
func snapshotClient(s *harness.Session) snapshotclient.Interface {
	s.T.Helper()
	config := s.Plane.RESTConfig()
	config.ContentType = runtime.ContentTypeJSON // custom resources have no protobuf encoding
	client, err := snapshotclient.NewForConfig(config)
	s.Must(err, "connect to the snapshot API")
	return client
}

// takeSnapshot takes a snapshot of a claim, of the class, and returns its handle once it is ready.
func takeSnapshot(s *harness.Session, client snapshotclient.Interface, name, claim, class string) string {
	s.T.Helper()
	_, err := client.SnapshotV1().VolumeSnapshots(s.Namespace).Create(s.Ctx, &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: snapshotv1.VolumeSnapshotSpec{VolumeSnapshotClassName: &class,
			Source: snapshotv1.VolumeSnapshotSource{PersistentVolumeClaimName: &claim}},
	}, metav1.CreateOptions{})
	s.Must(err, "create snapshot")
	var handle string
	err = wait.PollUntilContextCancel(s.Ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		snapshot, err := client.SnapshotV1().VolumeSnapshots(s.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil || snapshot.Status == nil || snapshot.Status.ReadyToUse == nil || !*snapshot.Status.ReadyToUse {
			return false, err
		}
		content, err := client.SnapshotV1().VolumeSnapshotContents().Get(ctx,
			*snapshot.Status.BoundVolumeSnapshotContentName, metav1.GetOptions{})
		if err == nil {
			handle = *content.Status.SnapshotHandle
		}
		return err == nil, err
	})
	s.Must(err, "wait for snapshot "+name)
	return handle
}

// deleteSnapshot deletes a snapshot, and waits until the VolumeSnapshot is gone.
func deleteSnapshot(s *harness.Session, client snapshotclient.Interface, name string) {
	s.T.Helper()
	snapshots := client.SnapshotV1().VolumeSnapshots(s.Namespace)
	s.Must(snapshots.Delete(s.Ctx, name, metav1.DeleteOptions{}), "delete snapshot")
	err := wait.PollUntilContextCancel(s.Ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		_, err := snapshots.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
	s.Must(err, "wait until the snapshot is gone")
}

// storedSnapshots returns the handles of the snapshots in the storage system.
func storedSnapshots(s *harness.Session) []string {
	s.T.Helper()
	handles, err := sandbox.StoredSnapshots(s.Ctx, s.Driver.Socket)
	s.Must(err, "list snapshots of the storage system")
	return handles
}

func TestSnapshotGoesOrStaysByItsPolicy(t *testing.T) {
	for name, setup := range map[string]harness.Setup{
		"ours":     {Teardown: true},
		"upstream": {Teardown: true, UpstreamLoops: true, UpstreamSidecar: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := harness.Own(t, setup)
			client := snapshotClient(s)
			s.CreateClaim("data", harness.DeleteClass)
			s.AwaitBound("data")
			goes, stays := takeSnapshot(s, client, "goes", "data", "delete"), takeSnapshot(s, client, "stays", "data", "retain")
			deleteSnapshot(s, client, "goes")
			deleteSnapshot(s, client, "stays")
			s.Until("the snapshot is gone", func() bool { return !slices.Contains(storedSnapshots(s), goes) })
			if left := storedSnapshots(s); !slices.Equal(left, []string{stays}) {
				t.Errorf("the storage system has snapshots %q, want %q", left, stays)
			}
		})
	}
}
