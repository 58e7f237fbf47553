package provision

import (
	"strconv"

	"github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// AllowModeChange is the annotation of a VolumeSnapshotContent that lets claims
// of the other volume mode be restored from it.
const AllowModeChange = "snapshot.storage.kubernetes.io/allow-volume-mode-change"

// SnapshotState is what is known of a VolumeSnapshot and of its content.
type SnapshotState struct {
	Name string
	// Deleting: it is being deleted. Protected: it carries the finalizer that was put
	// there before an earlier try, so that a volume may be half created from it.
	Deleting, Protected bool
	// Ready is readyToUse of its status. RestoreSize is the least size of a volume, nil if
	// unknown.
	Ready       bool
	RestoreSize *resource.Quantity
	// Content is the VolumeSnapshotContent that it is bound to, nil for none.
	Content *SnapshotContent
}

// SnapshotContent is what is known of a VolumeSnapshotContent.
type SnapshotContent struct {
	Name, Driver string
	// Mutual: it refers back to the snapshot.
	Mutual bool
	// Handle is what the driver calls the snapshot, "" if it is not known yet.
	Handle string
	// Mode is that of the volume that the snapshot was taken of, nil if unknown.
	Mode *v1.PersistentVolumeMode
	// AllowModeChange is the annotation of that name.
	AllowModeChange string
}

// FromSnapshot returns the content source of a volume that is restored from a snapshot; a
// nil snapshot does not exist. With keepMode the volume must have the mode of the
// snapshot's own volume. For a claim that is being deleted see [FromClaim].
func FromSnapshot(claim *v1.PersistentVolumeClaim, snapshot *SnapshotState, driver string,
	keepMode bool) (*csi.VolumeContentSource, error) {
	if err := nameable(snapshot, driver); err != nil {
		return nil, err
	}
	if claim.DeletionTimestamp == nil {
		if err := restorable(claim, snapshot, keepMode); err != nil {
			return nil, err
		}
	}
	return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{
		Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: snapshot.Content.Handle},
	}}, nil
}

// nameable returns why the snapshot has no handle of the driver.
func nameable(snapshot *SnapshotState, driver string) error {
	switch {
	case snapshot == nil:
		return notReady("error getting snapshot: the VolumeSnapshot that is the data source does not exist")
	case snapshot.Content == nil:
		return notReady("snapshot %s not bound to a VolumeSnapshotContent", snapshot.Name)
	case !snapshot.Content.Mutual:
		return notReady("snapshotcontent %s for snapshot %s is bound to a different snapshot", snapshot.Content.Name,
			snapshot.Name)
	case snapshot.Content.Driver != driver:
		return notReady("snapshotcontent %s for snapshot %s is not handled by CSI driver %s of the storage class, but by %s",
			snapshot.Content.Name, snapshot.Name, driver, snapshot.Content.Driver)
	case snapshot.Content.Handle == "":
		return notReady("snapshot handle %s is not available: the VolumeSnapshotContent %s of the snapshot has none yet",
			snapshot.Name, snapshot.Content.Name)
	}
	return nil
}

// restorable returns why no volume can be created from the snapshot for the claim.
func restorable(claim *v1.PersistentVolumeClaim, snapshot *SnapshotState, keepMode bool) error {
	switch {
	case snapshot.Deleting && !snapshot.Protected:
		return notReady("snapshot %s is being deleted, and can no longer be restored", snapshot.Name)
	case !snapshot.Ready:
		return notReady("snapshot %s is not Ready", snapshot.Name)
	case keepMode && !modeAllowed(claim, snapshot.Content):
		return notReady("requested volume mode %s modifies the mode of the source volume but does not have permission to do so: the snapshot was taken of a volume with the mode %s; an administrator can allow it with the annotation %s=true on the VolumeSnapshotContent %q",
			*claim.Spec.VolumeMode, *snapshot.Content.Mode, AllowModeChange, snapshot.Content.Name)
	}
	return largeEnough(claim, snapshot)
}

func largeEnough(claim *v1.PersistentVolumeClaim, snapshot *SnapshotState) error {
	requested := claim.Spec.Resources.Requests.Storage()
	if snapshot.RestoreSize == nil || sizeOf(claim).Cmp(*snapshot.RestoreSize) >= 0 {
		return nil
	}
	return notReady("requested volume size %s is less than the size %s for the source snapshot %s", requested,
		snapshot.RestoreSize, snapshot.Name)
}

// modeAllowed reports whether the claim has the mode of the volume that the snapshot
// was taken of, or may have another.
func modeAllowed(claim *v1.PersistentVolumeClaim, content *SnapshotContent) bool {
	if content.Mode == nil || claim.Spec.VolumeMode == nil || *content.Mode == *claim.Spec.VolumeMode {
		return true
	}
	allowed, err := strconv.ParseBool(content.AllowModeChange)
	return err == nil && allowed
}
