package volume

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// Watch registers the event handlers, and returns once every volume is enqueued.
func (c *Controller) Watch(ctx context.Context) error {
	return controller.RegisterHandlers(ctx,
		controller.EventHandler{Informer: c.Caches.Volumes, Handler: controller.OnChange(c.volumeChanged, c.volumeGone)},
		controller.EventHandler{Informer: c.Caches.Claims, Handler: controller.OnReplay(controller.Ignore[*v1.PersistentVolumeClaim], controller.OnChange(c.claimChanged, c.claimGone))},
	)
}

func (c *Controller) volumeChanged(_, volume *v1.PersistentVolume) {
	c.loop.Enqueue(volume.Name)
}

func (c *Controller) volumeGone(volume *v1.PersistentVolume) {
	c.Versions.Forget(volume.UID)
	c.Reporter.Forget(volume.UID)
	c.Waiting.Forget(volume.UID)
}

// claimChanged enqueues the volumes that refer to a new claim, or to a claim that names
// another volume than before.
func (c *Controller) claimChanged(old, claim *v1.PersistentVolumeClaim) {
	if old == nil || old.UID != claim.UID || old.Spec.VolumeName != claim.Spec.VolumeName {
		c.claimGone(claim)
	}
}

func (c *Controller) claimGone(claim *v1.PersistentVolumeClaim) {
	for _, volume := range c.Caches.VolumesOf(controller.Key(claim)) {
		c.loop.Enqueue(volume.Name)
	}
	if claim.Spec.VolumeName != "" {
		c.loop.Enqueue(claim.Spec.VolumeName)
	}
}
