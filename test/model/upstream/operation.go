package upstream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// hostPath is the plugin that deletes volumes in this model. The path is the handle of the
// disk.
const hostPath = "kubernetes.io/host-path"

// operation is work that the binder does beside its queues, from the object as it was when
// the operation was scheduled.
type operation struct {
	Claim       *v1.PersistentVolumeClaim
	Provisioner string
	Volume      *v1.PersistentVolume
}

// operations are scheduled or running, by name. A restart loses them.
type operations struct {
	mu      sync.Mutex
	pending map[string]operation
}

// schedule starts the operation unless it runs already.
func (b *binder) schedule(name string, scheduled operation) {
	b.operations.mu.Lock()
	defer b.operations.mu.Unlock()
	if _, runs := b.operations.pending[name]; !runs {
		b.operations.pending[name] = scheduled
		b.operationLoop.Enqueue(name)
	}
}

// runOperation runs an operation once. The next pass for its claim or volume schedules a
// failed operation again.
func (b *binder) runOperation(ctx context.Context, name string) error {
	b.operations.mu.Lock()
	scheduled := b.operations.pending[name]
	b.operations.mu.Unlock()
	defer func() {
		b.operations.mu.Lock()
		defer b.operations.mu.Unlock()
		delete(b.operations.pending, name)
	}()
	switch {
	case scheduled.Claim != nil:
		b.setProvisioner(ctx, scheduled.Claim, scheduled.Provisioner)
	case scheduled.Volume != nil && strings.HasPrefix(name, "recycle-"):
		b.recycle(ctx, scheduled.Volume)
	case scheduled.Volume != nil:
		b.deleteDisk(ctx, scheduled.Volume)
	}
	return nil
}

// setProvisioner writes the annotations that request the volume.
func (b *binder) setProvisioner(ctx context.Context, claim *v1.PersistentVolumeClaim, provisioner string) {
	if claim.Annotations[storage.AnnStorageProvisioner] == provisioner {
		return
	}
	changed := claim.DeepCopy()
	metav1.SetMetaDataAnnotation(&changed.ObjectMeta, storage.AnnBetaStorageProvisioner, provisioner)
	metav1.SetMetaDataAnnotation(&changed.ObjectMeta, storage.AnnStorageProvisioner, provisioner)
	_, _ = b.updateClaim(ctx, changed) // the next pass for the claim tries again
}

// recycle fails: no plugin here can recycle.
func (b *binder) recycle(ctx context.Context, volume *v1.PersistentVolume) {
	if live, released := b.readReleased(ctx, volume.Name); released {
		b.fail(ctx, live)
	}
}

// deleteDisk deletes the disk of a volume with a plugin, then its finalizer and the volume.
// External provisioners delete all other disks. Steps 9 and 10 of KEP-2644: with the gate
// off, a volume that is gone, or being deleted, counts as deleted.
func (b *binder) deleteDisk(ctx context.Context, volume *v1.PersistentVolume) {
	external, err := deletedElsewhere(volume)
	if err != nil {
		b.fail(ctx, volume)
	}
	if external || err != nil {
		return
	}
	live, released := b.readReleased(ctx, volume.Name)
	if !released || !b.honor && live.DeletionTimestamp != nil {
		return
	}
	if err := b.deleteWithPlugin(ctx, volume); err != nil {
		b.fail(ctx, volume)
		return
	}
	_ = b.client.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, metav1.DeleteOptions{}) // the next pass tries again
}

// deletedElsewhere reports whether an external provisioner deletes the disk, and an error if
// nobody does.
func deletedElsewhere(volume *v1.PersistentVolume) (bool, error) {
	provisioner := volume.Annotations[storage.AnnDynamicallyProvisioned]
	_, migrated := volume.Annotations[storage.AnnMigratedTo]
	switch {
	case provisioner == hostPath:
		return false, nil
	case isInTree(provisioner):
		return false, fmt.Errorf("find plugin %s", provisioner)
	case provisioner != "", migrated, volume.Spec.CSI != nil:
		return true, nil
	case volume.Spec.HostPath == nil:
		return false, errors.New("find a plugin that deletes the volume")
	}
	return false, nil
}

func (b *binder) deleteWithPlugin(ctx context.Context, volume *v1.PersistentVolume) error {
	if volume.Spec.HostPath == nil {
		return errors.New("the volume has no path")
	}
	if err := b.driver.DeleteVolume(ctx, volume.Spec.HostPath.Path, nil); err != nil {
		return fmt.Errorf("delete disk of volume %s: %w", volume.Name, err)
	}
	if !b.honor {
		return nil
	}
	live, err := b.client.CoreV1().PersistentVolumes().Get(ctx, volume.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read volume %s: %w", volume.Name, err)
	}
	if !finalizer.Has(live.Finalizers, finalizer.InTree) {
		return nil
	}
	live.Finalizers = finalizer.Without(live.Finalizers, finalizer.InTree)
	_, err = b.updateVolume(ctx, live)
	return err
}

// readReleased reads the volume live, and reports whether its claim is gone, by the store, or
// bound to another volume.
func (b *binder) readReleased(ctx context.Context, name string) (*v1.PersistentVolume, bool) {
	live, err := b.client.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
	if err != nil || live.Spec.ClaimRef == nil || live.Spec.ClaimRef.UID == "" {
		return nil, false
	}
	claim, found := b.claims.get(controller.ClaimKey(live))
	if !found || claim.UID != live.Spec.ClaimRef.UID {
		return live, true
	}
	return live, claim.Spec.VolumeName != "" && claim.Spec.VolumeName != name
}

// fail sets the phase Failed. The next pass for the volume tries again.
func (b *binder) fail(ctx context.Context, volume *v1.PersistentVolume) {
	_, _ = b.setVolumePhase(ctx, volume, v1.VolumeFailed)
}
