package provisioning

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/protection"
	"github.com/exeunt-io/exeunt/pkg/reclaim"
)

// Names are those by which claims and volumes are known to be the driver's. A
// cache keeps of all others no more than a [controller.Foreign], for a cluster has
// many drivers and each of them a provisioner.
type Names struct {
	// Driver is its own name.
	Driver string
	// Migrated are the names of the in-tree plugins that it replaces.
	Migrated []string
}

func (n Names) include(name string) bool {
	return name != "" && (name == n.Driver || slices.Contains(n.Migrated, name))
}

// ownsClaim says whether this provisioner may have to do something for the claim.
// Who shall provision is written on the claim itself; its class alone does not
// count. That can be changed while a volume is being made, so a claim that is held
// is kept by all. The sources of clones, and who needs them, are the affair of all
// drivers together.
func (n Names) ownsClaim(claim *v1.PersistentVolumeClaim) bool {
	return n.include(claim.Annotations[binding.StorageProvisioner]) ||
		n.include(claim.Annotations[binding.BetaStorageProvisioner]) ||
		n.include(claim.Annotations[binding.MigratedTo]) ||
		finalizer.Has(claim.Finalizers, finalizer.Provisioning) ||
		finalizer.Has(claim.Finalizers, finalizer.CloneSource) ||
		protection.NeededSource(claim).Kind != protection.NoSource
}

// ownsVolume says whether this provisioner may have to do something for the volume.
func (n Names) ownsVolume(volume *v1.PersistentVolume) bool {
	return reclaim.Owns(n.Driver, volume) || n.include(volume.Annotations[binding.ProvisionedBy])
}

// TrimClaim is a transform.
func (n Names) TrimClaim(object any) (any, error) {
	claim, ok := object.(*v1.PersistentVolumeClaim)
	if ok && !n.ownsClaim(claim) {
		return controller.NewForeign(claim, ""), nil
	}
	return controller.StripManagedFields(object)
}

// TrimVolume is a transform. A volume that is not the driver's to reclaim can have
// one of its handles nevertheless.
func (n Names) TrimVolume(object any) (any, error) {
	volume, ok := object.(*v1.PersistentVolume)
	switch {
	case !ok, n.ownsVolume(volume):
		return controller.StripManagedFields(object)
	case volume.Spec.CSI != nil && volume.Spec.CSI.Driver == n.Driver:
		return controller.NewForeign(volume, volume.Spec.CSI.VolumeHandle), nil
	}
	return controller.NewForeign(volume, ""), nil
}

// TrimAttachment is a transform that keeps of the attachments of other drivers
// which volume they hold.
func (n Names) TrimAttachment(object any) (any, error) {
	attachment, ok := object.(*storagev1.VolumeAttachment)
	if !ok || attachment.Spec.Attacher == n.Driver {
		return controller.StripManagedFields(object)
	}
	volume := ""
	if attachment.Spec.Source.PersistentVolumeName != nil {
		volume = *attachment.Spec.Source.PersistentVolumeName
	}
	return controller.NewForeign(attachment, volume), nil
}
