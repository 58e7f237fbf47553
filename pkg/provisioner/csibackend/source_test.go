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
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// leaving returns the metadata of an object that is being deleted.
func leaving(name string, finalizers ...finalizer.Name) metav1.ObjectMeta {
	now := metav1.Now()
	object := metav1.ObjectMeta{Namespace: "team", Name: name, UID: "o", DeletionTimestamp: &now,
		Finalizers: []string{"example.com/other"}}
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
		Spec:       v1.PersistentVolumeClaimSpec{VolumeName: "v", StorageClassName: &class},
		Status:     v1.PersistentVolumeClaimStatus{Phase: v1.ClaimBound},
	}
	volume = &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "v"}, Status: v1.PersistentVolumeStatus{Phase: v1.VolumeBound},
		Spec: v1.PersistentVolumeSpec{
			ClaimRef: &v1.ObjectReference{Namespace: "team", Name: "origin", UID: "o"},
			PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: "driver",
				VolumeHandle: "h"}},
		},
	}
	snapshot = &snapshotv1.VolumeSnapshot{
		ObjectMeta: leaving("origin", finalizer.SnapshotSource),
		Status:     &snapshotv1.VolumeSnapshotStatus{BoundVolumeSnapshotContentName: &content, ReadyToUse: &ready},
	}
	contents = &snapshotv1.VolumeSnapshotContent{
		ObjectMeta: metav1.ObjectMeta{Name: content},
		Status:     &snapshotv1.VolumeSnapshotContentStatus{SnapshotHandle: &handle},
		Spec: snapshotv1.VolumeSnapshotContentSpec{Driver: "driver",
			VolumeSnapshotRef: v1.ObjectReference{Namespace: "team", Name: "origin", UID: "o"}},
	}
	return claim, volume, snapshot, contents
}

func TestSourceIsReadAfterRemovalOfFinalizer(t *testing.T) {
	claim, volume, snapshot, contents := leavingSources()
	group := "snapshot.storage.k8s.io"
	for _, kind := range []string{"PersistentVolumeClaim", "VolumeSnapshot"} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t, []runtime.Object{newNode("n", "a"), newCSINode("n"), claim, volume},
				[]runtime.Object{snapshot, contents})
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
				_, err := w.inputs.Client.CoreV1().PersistentVolumeClaims("team").
					Update(t.Context(), unprotectedClaim, metav1.UpdateOptions{})
				must(t, err)
				_, err = w.inputs.Snapshots.SnapshotV1().VolumeSnapshots("team").
					Update(t.Context(), unprotectedSnapshot, metav1.UpdateOptions{})
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

// A provisioner runs on each node, and the volume of the source is on another one.
func TestCloneOfUnreachedSourceGivesUpTheNode(t *testing.T) {
	for name, tc := range map[string]struct {
		reaches, deleting, gives bool
		kind                     string
	}{
		"source on this node":           {true, false, false, "PersistentVolumeClaim"},
		"source on another node":        {false, false, true, "PersistentVolumeClaim"},
		"the same, claim being deleted": {false, true, false, "PersistentVolumeClaim"},
		"snapshot, which has no node":   {false, false, false, "VolumeSnapshot"},
	} {
		t.Run(name, func(t *testing.T) {
			claim, volume, snapshot, contents := leavingSources()
			w := newWorld(t, []runtime.Object{newNode("n", "a"), newCSINode("n"), claim, volume},
				[]runtime.Object{snapshot, contents})
			w.inputs.Reaches = func(*v1.PersistentVolume) bool { return tc.reaches }
			from := options(func(o *library.ProvisionOptions) {
				o.PVC.Spec.DataSource = &v1.TypedLocalObjectReference{Kind: tc.kind, Name: "origin"}
				if group := storage.SnapshotGroup; tc.kind == "VolumeSnapshot" {
					o.PVC.Spec.DataSource.APIGroup = &group
				}
				if tc.deleting {
					now := metav1.Now()
					o.PVC.DeletionTimestamp = &now
				}
			})
			_, _, _, err := w.inputs.For(t.Context(), from)
			var unsuitable *provision.UnsuitableNode
			if errors.As(err, &unsuitable) != tc.gives || err != nil && !tc.gives {
				t.Errorf("For = %v, want the node given up: %t", err, tc.gives)
			}
			if tc.gives && len(w.protected) > 0 {
				t.Errorf("protected %v", w.protected)
			}
			reaches, err := w.inputs.ReachesSource(t.Context(), from.PVC)
			if want := tc.reaches || tc.kind != "PersistentVolumeClaim"; reaches != want || err != nil {
				t.Errorf("ReachesSource = %t, %v; want %t", reaches, err, want)
			}
		})
	}
}

func TestSourceThatCannotBeClonedYetIsNoReasonAgainstTheNode(t *testing.T) {
	w := newWorld(t, []runtime.Object{newNode("n", "a"), newCSINode("n")}, nil)
	w.inputs.Reaches = func(*v1.PersistentVolume) bool { return false }
	for name, claim := range map[string]*v1.PersistentVolumeClaim{
		"no source": {},
		"missing source": {ObjectMeta: metav1.ObjectMeta{Namespace: "team"},
			Spec: v1.PersistentVolumeClaimSpec{DataSource: &v1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim",
				Name: "origin"}}},
	} {
		if reaches, err := w.inputs.ReachesSource(t.Context(), claim); !reaches || err != nil {
			t.Errorf("%s: ReachesSource = %t, %v", name, reaches, err)
		}
	}
}
