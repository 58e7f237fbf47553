package claim

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/controller"
)

// observe returns nil if the claim is gone, and an error if the cache has not seen our last
// write of the claim or its volume.
func (c *Controller) observe(ctx context.Context, key string) (*observation, error) {
	claim := c.Caches.Claim(key)
	if claim == nil {
		c.index.Cancel(key)
		return nil, nil
	}
	if !c.Versions.IsFresh(claim) {
		return nil, c.Versions.AwaitClaim(ctx, c.Client, claim)
	}
	if err := c.awaitReserved(ctx, claim); err != nil {
		return nil, err
	}
	volume, err := c.volumeFor(claim)
	if err != nil {
		c.Reporter.Report(claim, controller.WarningEvent(failedBinding, "Cannot look for a volume: "+err.Error()))
		return nil, nil
	}
	if volume != nil && !c.Versions.IsFresh(volume) {
		return nil, c.Versions.AwaitVolume(ctx, c.Client, volume)
	}
	return c.Observer.observe(claim, volume, false), nil
}

// awaitReserved returns an error if this process set the claimRef of a volume to the claim, and the
// cache does not show that write yet. Until then another volume would be found for the claim.
func (c *Controller) awaitReserved(ctx context.Context, claim *v1.PersistentVolumeClaim) error {
	r := c.reserved.Get(claim.UID)
	if r.name == "" {
		return nil
	}
	volume := c.Caches.Volume(r.name)
	switch {
	case claim.Spec.VolumeName != "" || volume == nil:
	case r.unanswered == volume.ResourceVersion:
		return nil
	case r.unanswered == "" && !c.Versions.IsFresh(volume):
		return c.Versions.AwaitVolume(ctx, c.Client, volume)
	}
	c.reserved.Forget(claim.UID)
	return nil
}

// unanswered returns the volume in which this process may have set the claimRef to the claim, by a write without an
// answer, nil if there is none. The cache shows the version of before: the write is repeated for the same volume.
func (c *Controller) unanswered(claim *v1.PersistentVolumeClaim) *v1.PersistentVolume {
	r := c.reserved.Get(claim.UID)
	if r.unanswered == "" {
		return nil
	}
	volume := c.Caches.Volume(r.name)
	switch {
	case volume == nil || volume.ResourceVersion != r.unanswered:
	case bindCompleted(claim) || claim.DeletionTimestamp != nil:
	case binding.ReservedVolume([]*v1.PersistentVolume{volume}, claim) != nil:
		return volume
	case c.needsVolume(claim) && binding.Mismatch(volume, claim) == "":
		return volume
	}
	return nil
}

// remember remembers the reservation until the claim is gone.
func (c *Controller) remember(claim *v1.PersistentVolumeClaim, reserved reservation) {
	c.reserved.Update(claim.UID, func(r *reservation) { *r = reserved })
	if now := c.Caches.Claim(controller.Key(claim)); now == nil || now.UID != claim.UID { // perhaps forgotten before
		c.reserved.Forget(claim.UID)
	}
}

// volumeFor returns the volume that the claim names or that refers to the claim, or else
// reserves one in the index.
func (c *Controller) volumeFor(claim *v1.PersistentVolumeClaim) (*v1.PersistentVolume, error) {
	if claim.Spec.VolumeName == "" {
		if volume := c.unanswered(claim); volume != nil {
			return volume, nil
		}
	}
	volume := c.Observer.volumeOf(claim)
	if volume == nil && claim.Spec.VolumeName == "" && c.needsVolume(claim) {
		return c.takeVolume(claim)
	}
	c.index.Cancel(controller.Key(claim))
	return volume, nil
}

// needsVolume reports whether a claim without volume may take one from the index.
func (c *Controller) needsVolume(claim *v1.PersistentVolumeClaim) bool {
	return !bindCompleted(claim) && claim.DeletionTimestamp == nil && !c.Observer.delaysBinding(claim)
}

// removeFromIndex removes a volume that is not free. An event that says that it is free again may have come
// before: the cache shows that then.
func (c *Controller) removeFromIndex(name string) {
	c.index.Remove(name)
	c.indexVolume(name)
}

// takeVolume reserves a volume for the claim. The index may be older than the cache: the
// reserved volume counts only if the cache knows the same version of its fields. A volume that
// a recycler pod scrubs is not free until [Controller.RecyclerEnded].
func (c *Controller) takeVolume(claim *v1.PersistentVolumeClaim) (*v1.PersistentVolume, error) {
	for {
		name, err := c.index.Reserve(claim)
		if name == "" || err != nil {
			return nil, err
		}
		switch volume := c.Caches.Volume(name); {
		case volume == nil || c.Caches.OwnerOf(volume) != nil:
			c.removeFromIndex(name)
		case c.Observer.isScrubbed(volume):
			c.index.Remove(name)
			if !c.Observer.isScrubbed(volume) { // RecyclerEnded came before Remove
				c.RecyclerEnded(name)
			}
		case !c.Versions.IsFresh(volume), c.index.Update(volume):
			return volume, nil
		}
	}
}
