package deletion

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/provisioner/backend"
	"github.com/exeunt-io/exeunt/pkg/reclaim"
	"github.com/exeunt-io/exeunt/pkg/reclaim/external"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// observation is a volume and its state.
type observation struct {
	volume *v1.PersistentVolume
	state  external.State
	// prepared deletes the volume in the storage system. Only a confirmed observation has it.
	prepared backend.DeleteCall
	// read is when the reads of a confirmed observation began.
	read time.Time
}

// observe returns the observation of a volume whose claim is not read.
func (c *Controller) observe(volume *v1.PersistentVolume) observation {
	return observation{volume: volume, state: c.stateOf(volume, storage.UnreadClaim(volume), false)}
}

// stateOf looks for other volumes on the disk, and for attachments, only if the data may be
// deleted: most volumes of a cluster are bound.
func (c *Controller) stateOf(volume *v1.PersistentVolume, claim storage.ClaimRelation, confirmed bool) external.State {
	progress, phase := c.memory.Get(volume.UID), storage.PhaseOf(volume.Status.Phase)
	released := phase.Released()
	return external.State{
		Honor:     c.Honor,
		Owned:     c.owns(volume),
		Dynamic:   storage.HasProvisioner(volume),
		Policy:    storage.PolicyOf(volume.Spec.PersistentVolumeReclaimPolicy),
		Phase:     phase,
		Deleting:  volume.DeletionTimestamp != nil || progress.objectDeleted,
		Protected: finalizer.Has(volume.Finalizers, finalizer.External),
		Claim:     claim,
		Attached:  released && c.isAttached(volume),
		// Two PersistentVolumes may have one disk, and a path pattern put one volume into the directory of another:
		// the deletion of the outer one took the data of the inner one along.
		Shared:    released && len(c.sharing(volume)) > 0,
		Status:    reclaim.StatusOf(volume),
		Deleted:   progress.volumeDeleted,
		Confirmed: confirmed,
	}
}

// owns reports whether the driver of this process reclaims the volume. With a process on each node it must reach
// the disk: a driver answers success for a disk that it does not have, so the PersistentVolume would be deleted
// and the disk stay on the other node.
func (c *Controller) owns(volume *v1.PersistentVolume) bool {
	return external.Owns(c.Deleter.Name(), volume) && (c.Reaches == nil || c.Reaches(volume))
}

// isAttached reports whether a node may still write to the disk. Without an answer from the index it may.
func (c *Controller) isAttached(volume *v1.PersistentVolume) bool {
	if c.Attachments == nil {
		return false
	}
	attachments, err := c.Attachments.GetIndexer().ByIndex(byVolume, volume.Name)
	return err != nil || len(attachments) > 0
}

// confirm reads the volume and its claim from the API server, the volume last, after the call of the storage
// system is prepared. The secret was read after the volume, which took tens of seconds under the rate limit of the
// client; the policy became Retain meanwhile, and the data was deleted. It returns nil if the volume is gone, or
// another volume has its name.
func (c *Controller) confirm(ctx context.Context, o observation) (*observation, error) {
	prepared := o.prepared
	if prepared == nil {
		prepared = c.prepare(ctx, o.volume)
	}
	volume, claim, read, err := controller.LivePair(ctx, c.Client, o.volume)
	switch {
	case err != nil:
		return nil, err
	case volume == nil && c.isCached(o.volume): // no event may come
		return nil, controller.ErrStaleCache
	case volume == nil:
		return nil, nil
	case volume.ResourceVersion != o.volume.ResourceVersion:
		// Policy, claimRef or the secret's name may be others by now; the call was prepared for an earlier version.
		return new(c.observe(volume)), nil
	}
	return &observation{volume: volume, state: c.stateOf(volume, storage.ClaimOf(volume, claim), true), prepared: prepared,
		read: read}, nil
}

// isCached reports whether the cache still has the volume.
func (c *Controller) isCached(volume *v1.PersistentVolume) bool {
	cached := controller.Lookup[*v1.PersistentVolume](c.Volumes, volume.Name)
	return cached != nil && cached.UID == volume.UID
}

// prepare returns the call that deletes the volume. The call returns the error of its
// preparation: the error does not count if the volume is not to be deleted.
func (c *Controller) prepare(ctx context.Context, volume *v1.PersistentVolume) backend.DeleteCall {
	prepared, err := c.Deleter.PrepareDelete(ctx, volume)
	if err != nil {
		return func(context.Context) error { return err }
	}
	return prepared
}
