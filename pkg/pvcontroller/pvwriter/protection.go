package pvwriter

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/patch"
)

// AddProtection adds the finalizer pv-protection.
func (w *Writer) AddProtection(ctx context.Context, volume *v1.PersistentVolume) (*v1.PersistentVolume, error) {
	change := controller.RequirePhase(patch.For(volume), volume)
	addProtection(change, volume)
	return w.writer.PatchVolume(ctx, volume, change)
}

func addProtection(change *patch.Patch, volume *v1.PersistentVolume) {
	finalizer.Edit(change, volume, finalizer.Change{Add: []finalizer.Name{finalizer.VolumeProtection}})
}

// RemoveProtection removes the finalizer pv-protection.
func (w *Writer) RemoveProtection(ctx context.Context, volume *v1.PersistentVolume) (*v1.PersistentVolume, error) {
	change := controller.RequirePhase(patch.For(volume), volume)
	removeProtection(change, volume)
	return w.writer.PatchVolume(ctx, volume, change)
}

// removeProtection tests the whole version where no finalizer keeps the volume until
// it is reclaimed: an annotation exeunt.io/reclaim added meanwhile must not be missed. By it
// the provisioner asks to keep the object, without which nobody deletes the disk.
func removeProtection(change *patch.Patch, volume *v1.PersistentVolume) {
	change.TestDeletion(volume)
	if !finalizer.Has(volume.Finalizers, finalizer.External) && !finalizer.Has(volume.Finalizers, finalizer.InTree) {
		change.Test("/metadata/resourceVersion", volume.ResourceVersion)
	}
	finalizer.Edit(change, volume, finalizer.Change{Remove: []finalizer.Name{finalizer.VolumeProtection}})
}
