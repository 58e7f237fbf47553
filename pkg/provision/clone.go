package provision

import (
	"github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// FromClaim returns the content source of a clone. Source is the source claim, volume its
// PersistentVolume with a CSI source; nil means that the object does not exist. If claim is
// being deleted, the request only finds out whether the clone exists, and the checks of a
// new clone are left out.
func FromClaim(claim, source *v1.PersistentVolumeClaim, volume *v1.PersistentVolume,
	driver string) (*csi.VolumeContentSource, error) {
	if err := clonable(claim, source); err != nil {
		return nil, err
	}
	if err := cloneVolume(claim, source, volume, driver); err != nil {
		return nil, err
	}
	return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{
		Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: volume.Spec.CSI.VolumeHandle},
	}}, nil
}

// clonable returns why the source claim cannot be cloned.
func clonable(claim, source *v1.PersistentVolumeClaim) error {
	switch {
	case source == nil:
		return notReady("error getting PVC: the claim that is the data source does not exist")
	case claim.DeletionTimestamp != nil:
		return nil
	case source.DeletionTimestamp != nil && !finalizer.Has(source.Finalizers, finalizer.CloneSource):
		return notReady("PVC DataSource %s is currently being deleted, and can no longer be cloned", source.Name)
	case source.Status.Phase != v1.ClaimBound || source.Spec.VolumeName == "":
		return notReady("PVC DataSource %s must have a status of Bound", source.Name)
	case source.Spec.StorageClassName == nil || claim.Spec.StorageClassName == nil:
		return notReady("source PVC (%s) and its clone must name a storage class, their storageclass cannot be empty",
			source.Name)
	case sizeOf(claim).Cmp(*sizeOf(source)) < 0:
		return notReady("new PVC request must be greater than or equal in size to the specified PVC data source: %s is less than the %s of claim %s",
			claim.Spec.Resources.Requests.Storage(), source.Spec.Resources.Requests.Storage(), source.Name)
	}
	return nil
}

// cloneVolume returns why the volume of the source claim cannot be cloned.
func cloneVolume(claim, source *v1.PersistentVolumeClaim, volume *v1.PersistentVolume, driver string) error {
	switch {
	case volume == nil:
		return notReady("claim in dataSource not bound or invalid: its volume %s does not exist", source.Spec.VolumeName)
	case !bound(volume, source) && claim.DeletionTimestamp == nil:
		return notReady("claim in dataSource not bound or invalid: its volume %s is not bound to the claim %s", volume.Name,
			source.Name)
	case volume.Spec.CSI == nil || volume.Spec.CSI.Driver != driver:
		return notReady("claim in dataSource not bound or invalid: its volume %s is not of driver %s", volume.Name, driver)
	case storage.ModeOf(volume.Spec.VolumeMode) != storage.ModeOf(claim.Spec.VolumeMode) && claim.DeletionTimestamp == nil:
		return notReady("source PVC and clone must have the same volume mode for cloning: volume %s has the mode %s, and the claim requests %s",
			volume.Name, storage.ModeOf(volume.Spec.VolumeMode), storage.ModeOf(claim.Spec.VolumeMode))
	}
	return nil
}

func bound(volume *v1.PersistentVolume, claim *v1.PersistentVolumeClaim) bool {
	reference := volume.Spec.ClaimRef
	return reference != nil && reference.UID == claim.UID && reference.Namespace == claim.Namespace &&
		reference.Name == claim.Name && volume.Status.Phase == v1.VolumeBound
}
