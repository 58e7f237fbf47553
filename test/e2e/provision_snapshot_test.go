package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	snapshotclient "github.com/kubernetes-csi/external-snapshotter/client/v8/clientset/versioned"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/exeunt-io/exeunt/internal/sandbox"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/provision"
)

// snapshotModule is where the definitions of the snapshot API come from.
const snapshotModule = "github.com/kubernetes-csi/external-snapshotter/client/v8"

// snapshots installs the snapshot API and returns its client.
func (s *scene) snapshots() snapshotclient.Interface {
	s.t.Helper()
	config := rest.CopyConfig(s.plane.RESTConfig())
	config.ContentType = runtime.ContentTypeJSON // custom resources know nothing else
	client, err := snapshotclient.NewForConfig(config)
	s.must(err, "connect to the snapshot API")
	dir, err := exec.CommandContext(s.ctx, "go", "list", "-m", "-f", "{{.Dir}}", snapshotModule).Output()
	s.must(err, "find the snapshot API")
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "config", "crd", "snapshot.storage.k8s.io_*.yaml"))
	s.must(err, "find the snapshot API")
	for _, file := range files {
		text, err := os.ReadFile(file)
		s.must(err, "read the snapshot API")
		s.must(sandbox.ApplyYAML(s.ctx, s.plane.RESTConfig(), text), "install the snapshot API")
	}
	err = wait.PollUntilContextCancel(s.ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_, snapshots := client.SnapshotV1().VolumeSnapshots("").List(ctx, metav1.ListOptions{})
		_, contents := client.SnapshotV1().VolumeSnapshotContents().List(ctx, metav1.ListOptions{})
		return snapshots == nil && contents == nil, nil
	})
	s.must(err, "wait for the snapshot API")
	return client
}

// takeSnapshot has the driver take a snapshot of the volume and writes the objects
// for it, the snapshot not ready yet.
func (s *scene) takeSnapshot(client snapshotclient.Interface, name string, volume *v1.PersistentVolume) *snapshotv1.VolumeSnapshot {
	s.t.Helper()
	taken, err := s.storage().CreateSnapshot(s.ctx, &spec.CreateSnapshotRequest{SourceVolumeId: handle(volume), Name: s.namespace + "-" + name})
	s.must(err, "take snapshot")
	id, contentName := taken.GetSnapshot().GetSnapshotId(), s.namespace+"-"+name
	snapshot, err := client.SnapshotV1().VolumeSnapshots(s.namespace).Create(s.ctx, &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       snapshotv1.VolumeSnapshotSpec{Source: snapshotv1.VolumeSnapshotSource{VolumeSnapshotContentName: &contentName}},
	}, metav1.CreateOptions{})
	s.must(err, "create snapshot")
	content, err := client.SnapshotV1().VolumeSnapshotContents().Create(s.ctx, &snapshotv1.VolumeSnapshotContent{
		ObjectMeta: metav1.ObjectMeta{Name: contentName},
		Spec: snapshotv1.VolumeSnapshotContentSpec{
			Driver: s.driver.DriverName, DeletionPolicy: snapshotv1.VolumeSnapshotContentRetain, SourceVolumeMode: volume.Spec.VolumeMode,
			Source:            snapshotv1.VolumeSnapshotContentSource{SnapshotHandle: &id},
			VolumeSnapshotRef: v1.ObjectReference{Namespace: s.namespace, Name: name, UID: snapshot.UID},
		},
	}, metav1.CreateOptions{})
	s.must(err, "create content")
	content.Status = &snapshotv1.VolumeSnapshotContentStatus{SnapshotHandle: &id}
	_, err = client.SnapshotV1().VolumeSnapshotContents().UpdateStatus(s.ctx, content, metav1.UpdateOptions{})
	s.must(err, "write content's status")
	snapshot.Status = &snapshotv1.VolumeSnapshotStatus{BoundVolumeSnapshotContentName: &contentName, RestoreSize: resource.NewQuantity(1<<20, resource.BinarySI)}
	snapshot, err = client.SnapshotV1().VolumeSnapshots(s.namespace).UpdateStatus(s.ctx, snapshot, metav1.UpdateOptions{})
	s.must(err, "write snapshot's status")
	return snapshot
}

func fromSnapshot(name string) func(*v1.PersistentVolumeClaim) {
	group := snapshotv1.GroupName
	return func(c *v1.PersistentVolumeClaim) {
		c.Spec.DataSource = &v1.TypedLocalObjectReference{APIGroup: &group, Kind: "VolumeSnapshot", Name: name}
	}
}

func TestASnapshotIsRestoredWhenItIsReady(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	client := s.snapshots()
	s.createClaim("origin", deleteClass)
	snapshot := s.takeSnapshot(client, "snapshot", s.awaitBound("origin"))
	waiting := s.createClaim("restored", deleteClass, fromSnapshot("snapshot"))
	if message := s.awaitEvent(waiting, "ProvisioningFailed"); !strings.Contains(message, "not Ready") {
		t.Errorf("the event does not say that the snapshot is not ready: %s", message)
	}
	block := v1.PersistentVolumeBlock
	converted := s.createClaim("converted", deleteClass, fromSnapshot("snapshot"), func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeMode = &block })
	ready := true
	snapshot.Status.ReadyToUse = &ready
	_, err := client.SnapshotV1().VolumeSnapshots(s.namespace).UpdateStatus(s.ctx, snapshot, metav1.UpdateOptions{})
	s.must(err, "make snapshot ready")

	restored := s.awaitBound("restored")
	if got := s.inStorage(restored).Source.Snapshot; !strings.HasPrefix(got, "snap-") {
		t.Errorf("the volume was made from the snapshot %q", got)
	}
	refusals := s.watchEvents("ProvisioningFailed")
	refusals.await(s, converted.Name, provision.AllowModeChange)
	s.deleteClaim(converted.Name)
	s.awaitClaimGone(converted.Name)
	err = wait.PollUntilContextCancel(s.ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		now, err := client.SnapshotV1().VolumeSnapshots(s.namespace).Get(ctx, snapshot.Name, metav1.GetOptions{})
		return err == nil && !finalizer.Has(now.Finalizers, finalizer.SnapshotSource), err
	})
	s.must(err, "wait until the snapshot is let go of")
}
