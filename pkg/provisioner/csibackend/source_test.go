package csibackend

import (
	"errors"
	"strings"
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	library "sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/provision"
)

// leaving returns the metadata of an object that is being deleted.
func leaving(name string, finalizers ...finalizer.Name) metav1.ObjectMeta {
	now := metav1.Now()
	object := metav1.ObjectMeta{Namespace: "team", Name: name, UID: "o", DeletionTimestamp: &now, Finalizers: []string{"example.com/other"}}
	for _, name := range finalizers {
		object.Finalizers = append(object.Finalizers, string(name))
	}
	return object
}

// leavingSources returns a claim and a snapshot that are being deleted and have their finalizers,
// and the objects that make both usable.
func leavingSources() (claim *v1.PersistentVolumeClaim, volume *v1.PersistentVolume, snapshot *snapshotv1.VolumeSnapshot, contents *snapshotv1.VolumeSnapshotContent) {
	class, ready, content, handle := "fast", true, "content", "snap"
	claim = &v1.PersistentVolumeClaim{
		ObjectMeta: leaving("origin", finalizer.CloneSource),
		Spec:       v1.PersistentVolumeClaimSpec{VolumeName: "v", StorageClassName: &class}, Status: v1.PersistentVolumeClaimStatus{Phase: v1.ClaimBound},
	}
	volume = &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "v"}, Status: v1.PersistentVolumeStatus{Phase: v1.VolumeBound},
		Spec: v1.PersistentVolumeSpec{
			ClaimRef:               &v1.ObjectReference{Namespace: "team", Name: "origin", UID: "o"},
			PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: "driver", VolumeHandle: "h"}},
		},
	}
	snapshot = &snapshotv1.VolumeSnapshot{
		ObjectMeta: leaving("origin", finalizer.SnapshotSource),
		Status:     &snapshotv1.VolumeSnapshotStatus{BoundVolumeSnapshotContentName: &content, ReadyToUse: &ready},
	}
	contents = &snapshotv1.VolumeSnapshotContent{
		ObjectMeta: metav1.ObjectMeta{Name: content}, Status: &snapshotv1.VolumeSnapshotContentStatus{SnapshotHandle: &handle},
		Spec: snapshotv1.VolumeSnapshotContentSpec{Driver: "driver", VolumeSnapshotRef: v1.ObjectReference{Namespace: "team", Name: "origin", UID: "o"}},
	}
	return claim, volume, snapshot, contents
}

func TestSourceIsReadAfterRemovalOfFinalizer(t *testing.T) {
	claim, volume, snapshot, contents := leavingSources()
	group := "snapshot.storage.k8s.io"
	for _, kind := range []string{"PersistentVolumeClaim", "VolumeSnapshot"} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t, []runtime.Object{newNode("n", "a"), newCSINode("n"), claim, volume}, []runtime.Object{snapshot, contents})
			from := options(func(o *library.ProvisionOptions) {
				o.PVC.Spec.DataSource = &v1.TypedLocalObjectReference{Kind: kind, Name: "origin"}
				if kind == "VolumeSnapshot" {
					o.PVC.Spec.DataSource.APIGroup = &group
				}
			})
			if _, _, _, err := w.inputs.For(t.Context(), from); err != nil || len(w.protected) != 1 {
				t.Fatalf("protected source: %v, protected %v", err, w.protected)
			}
			w.removing = func(key string) {
				if key != "team/origin" {
					t.Errorf("waits for source %q", key)
				}
				unprotectedClaim, unprotectedSnapshot := claim.DeepCopy(), snapshot.DeepCopy()
				unprotectedClaim.ObjectMeta, unprotectedSnapshot.ObjectMeta = leaving("origin"), leaving("origin")
				_, err := w.inputs.Client.CoreV1().PersistentVolumeClaims("team").Update(t.Context(), unprotectedClaim, metav1.UpdateOptions{})
				must(t, err)
				_, err = w.inputs.Snapshots.SnapshotV1().VolumeSnapshots("team").Update(t.Context(), unprotectedSnapshot, metav1.UpdateOptions{})
				must(t, err)
			}
			_, _, _, err := w.inputs.For(t.Context(), from)
			var missing *provision.NotReady
			if !errors.As(err, &missing) || !strings.Contains(missing.Sentence, "being deleted") || len(w.protected) != 1 {
				t.Errorf("For = %v, protected %v: want that the source is being deleted", err, w.protected)
			}
		})
	}
}
