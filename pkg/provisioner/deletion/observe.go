package deletion

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/reclaim"
	"github.com/exeunt-io/exeunt/pkg/reclaim/external"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// observation is a volume and its state.
type observation struct {
	volume *v1.PersistentVolume
	state  external.State
}

// observe returns the observation by the caches.
func (c *Controller) observe(volume *v1.PersistentVolume) observation {
	return observation{volume: volume, state: c.stateOf(volume, storage.UnreadClaim(volume), false)}
}

func (c *Controller) stateOf(volume *v1.PersistentVolume, claim storage.ClaimRelation, confirmed bool) external.State {
	progress := c.memory.Get(volume.UID)
	return external.State{
		Honor:     c.Honor,
		Owned:     c.owns(volume),
		Dynamic:   storage.HasProvisioner(volume),
		Policy:    storage.PolicyOf(volume.Spec.PersistentVolumeReclaimPolicy),
		Phase:     storage.PhaseOf(volume.Status.Phase),
		Deleting:  volume.DeletionTimestamp != nil || progress.objectDeleted,
		Protected: finalizer.Has(volume.Finalizers, finalizer.External),
		Claim:     claim,
		Attached:  c.isAttached(volume),
		Shared:    len(c.sharing(volume)) > 0,
		Status:    reclaim.StatusOf(volume),
		Deleted:   progress.volumeDeleted,
		Confirmed: confirmed,
	}
}

// owns reports whether the driver of this process reclaims the volume.
func (c *Controller) owns(volume *v1.PersistentVolume) bool {
	return external.Owns(c.Deleter.Name(), volume) && (c.Reaches == nil || c.Reaches(volume))
}

func (c *Controller) isAttached(volume *v1.PersistentVolume) bool {
	if c.Attachments == nil {
		return false
	}
	attachments, err := c.Attachments.GetIndexer().ByIndex(byVolume, volume.Name)
	return err != nil || len(attachments) > 0
}

// confirm reads the volume and its claim from the API server. It returns nil if the volume is
// gone, or another volume has its name.
func (c *Controller) confirm(ctx context.Context, o observation) (*observation, error) {
	volume, claim, err := controller.LivePair(ctx, c.Client, o.volume)
	if volume == nil || err != nil {
		return nil, err
	}
	return &observation{volume: volume, state: c.stateOf(volume, storage.ClaimOf(volume, claim), true)}, nil
}
