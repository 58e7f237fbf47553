package harness

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	snapshotclient "github.com/kubernetes-csi/external-snapshotter/client/v8/clientset/versioned"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// snapshotModule has the definitions of the snapshot API.
const snapshotModule = "github.com/kubernetes-csi/external-snapshotter/client/v8"

// SnapshotClient installs the snapshot API and returns its client.
func (s *Session) SnapshotClient() snapshotclient.Interface {
	s.T.Helper()
	config := rest.CopyConfig(s.Plane.RESTConfig())
	config.ContentType = runtime.ContentTypeJSON // custom resources have no protobuf encoding
	client, err := snapshotclient.NewForConfig(config)
	s.Must(err, "connect to the snapshot API")
	dir, err := exec.CommandContext(s.Ctx, "go", "list", "-m", "-f", "{{.Dir}}", snapshotModule).Output()
	s.Must(err, "find the snapshot API")
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "config", "crd",
		"*snapshot.storage.k8s.io_*.yaml"))
	s.Must(err, "find the snapshot API")
	for _, file := range files {
		text, err := os.ReadFile(file)
		s.Must(err, "read the snapshot API")
		s.Must(sandbox.ApplyYAML(s.Ctx, s.Plane.RESTConfig(), text), "install the snapshot API")
	}
	err = wait.PollUntilContextCancel(s.Ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_, snapshots := client.SnapshotV1().VolumeSnapshots("").List(ctx, metav1.ListOptions{})
		_, contents := client.SnapshotV1().VolumeSnapshotContents().List(ctx, metav1.ListOptions{})
		return snapshots == nil && contents == nil, nil
	})
	s.Must(err, "wait for the snapshot API")
	return client
}

// TakeSnapshot creates a snapshot in the driver, a VolumeSnapshotContent, and a
// VolumeSnapshot that is not ready yet.
func (s *Session) TakeSnapshot(client snapshotclient.Interface, name string,
	volume *v1.PersistentVolume) *snapshotv1.VolumeSnapshot {
	s.T.Helper()
	taken, err := s.StorageClient().CreateSnapshot(s.Ctx, &spec.CreateSnapshotRequest{SourceVolumeId: Handle(volume),
		Name: s.Namespace + "-" + name})
	s.Must(err, "take snapshot")
	id, contentName := taken.GetSnapshot().GetSnapshotId(), s.Namespace+"-"+name
	snapshot, err := client.SnapshotV1().VolumeSnapshots(s.Namespace).Create(s.Ctx, &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       snapshotv1.VolumeSnapshotSpec{Source: snapshotv1.VolumeSnapshotSource{VolumeSnapshotContentName: &contentName}},
	}, metav1.CreateOptions{})
	s.Must(err, "create snapshot")
	content, err := client.SnapshotV1().VolumeSnapshotContents().Create(s.Ctx, &snapshotv1.VolumeSnapshotContent{
		ObjectMeta: metav1.ObjectMeta{Name: contentName},
		Spec: snapshotv1.VolumeSnapshotContentSpec{
			Driver: s.Driver.DriverName, DeletionPolicy: snapshotv1.VolumeSnapshotContentRetain,
			SourceVolumeMode:  volume.Spec.VolumeMode,
			Source:            snapshotv1.VolumeSnapshotContentSource{SnapshotHandle: &id},
			VolumeSnapshotRef: v1.ObjectReference{Namespace: s.Namespace, Name: name, UID: snapshot.UID},
		},
	}, metav1.CreateOptions{})
	s.Must(err, "create content")
	content.Status = &snapshotv1.VolumeSnapshotContentStatus{SnapshotHandle: &id}
	_, err = client.SnapshotV1().VolumeSnapshotContents().UpdateStatus(s.Ctx, content, metav1.UpdateOptions{})
	s.Must(err, "write content's status")
	snapshot.Status = &snapshotv1.VolumeSnapshotStatus{BoundVolumeSnapshotContentName: &contentName,
		RestoreSize: resource.NewQuantity(1<<20, resource.BinarySI)}
	snapshot, err = client.SnapshotV1().VolumeSnapshots(s.Namespace).UpdateStatus(s.Ctx, snapshot, metav1.UpdateOptions{})
	s.Must(err, "write snapshot's status")
	return snapshot
}

// FromSnapshot makes a snapshot the data source of a claim.
func FromSnapshot(name string) func(*v1.PersistentVolumeClaim) {
	group := snapshotv1.GroupName
	return func(c *v1.PersistentVolumeClaim) {
		c.Spec.DataSource = &v1.TypedLocalObjectReference{APIGroup: &group, Kind: "VolumeSnapshot", Name: name}
	}
}

// CloneOf makes another claim the data source of a claim.
func CloneOf(source string) func(*v1.PersistentVolumeClaim) {
	return func(c *v1.PersistentVolumeClaim) {
		c.Spec.DataSource = &v1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: source}
	}
}

// CreateSnapshot creates a snapshot with the finalizer of a provisioner that no longer runs.
func (s *Session) CreateSnapshot(client snapshotclient.Interface, name string) {
	s.T.Helper()
	content := "content-of-" + name
	_, err := client.SnapshotV1().VolumeSnapshots(s.Namespace).Create(s.Ctx, &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{"example.com/other",
			string(finalizer.SnapshotSource)}},
		Spec: snapshotv1.VolumeSnapshotSpec{Source: snapshotv1.VolumeSnapshotSource{VolumeSnapshotContentName: &content}},
	}, metav1.CreateOptions{})
	s.Must(err, "create snapshot")
}

// AwaitSnapshot waits until the snapshot has the source finalizer, or has not.
func (s *Session) AwaitSnapshot(client snapshotclient.Interface, name string, protected bool) {
	s.T.Helper()
	err := wait.PollUntilContextCancel(s.Ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		now, err := client.SnapshotV1().VolumeSnapshots(s.Namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, err
		}
		if err == nil && !finalizer.Has(now.Finalizers, "example.com/other") {
			s.T.Fatalf("the finalizer of another program was removed from snapshot %s", name)
		}
		return err == nil && finalizer.Has(now.Finalizers, finalizer.SnapshotSource) == protected, nil
	})
	s.Must(err, "wait for snapshot "+name)
}
