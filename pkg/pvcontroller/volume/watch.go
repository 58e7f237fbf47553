package volume

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// watch registers the event handlers.
func (c *Controller) watch() error {
	for informer, handler := range map[cache.SharedIndexInformer]cache.ResourceEventHandler{
		c.Caches.Volumes: controller.OnChange(c.volumeChanged, c.volumeGone),
		c.Caches.Claims:  controller.OnChange(c.claimChanged, c.claimGone),
	} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return fmt.Errorf("add handler: %w", err)
		}
	}
	return nil
}

func (c *Controller) volumeChanged(_, volume *v1.PersistentVolume) {
	c.loop.Enqueue(volume.Name)
}

func (c *Controller) volumeGone(volume *v1.PersistentVolume) {
	c.Versions.Forget(volume.UID)
	c.Reporter.Forget(volume.UID)
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
