package claim

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/pvcache"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// Watch registers the event handlers, and returns once the index has every volume of
// the cache and every claim is enqueued.
func (c *Controller) Watch(ctx context.Context) error {
	c.started = time.Now()
	return controller.RegisterHandlers(ctx,
		controller.EventHandler{Informer: c.Caches.Claims, Handler: controller.OnChange(c.claimChanged, c.claimGone)},
		controller.EventHandler{Informer: c.Caches.Volumes, Handler: controller.OnReplay(c.volumeReplayed,
			controller.OnChange(c.volumeChanged, c.volumeGone))},
		controller.EventHandler{Informer: c.Caches.Classes,
			Handler: controller.OnReplay(controller.Ignore[*storagev1.StorageClass],
				controller.OnChange(c.classChanged, c.classGone))},
		controller.EventHandler{Informer: c.Caches.Pods, Handler: controller.OnReplay(controller.Ignore[*v1.Pod],
			controller.OnChange(c.podChanged, c.podGone))},
	)
}

func (c *Controller) claimChanged(_, claim *v1.PersistentVolumeClaim) {
	c.loop.Enqueue(controller.Key(claim))
}

func (c *Controller) claimGone(claim *v1.PersistentVolumeClaim) {
	c.Versions.Forget(claim.UID)
	c.reserved.Forget(claim.UID)
	c.Operations.Abandoned(claim.UID)
	c.Reporter.Forget(claim.UID)
	c.loop.Enqueue(controller.Key(claim))
	if volume := c.Caches.Volume(claim.Spec.VolumeName); volume != nil &&
		volume.Spec.ClaimRef == nil { // the claim may have owned it
		c.volumeChanged(nil, volume)
	}
}

func (c *Controller) volumeReplayed(volume *v1.PersistentVolume) {
	c.indexVolume(volume.Name)
}

func (c *Controller) volumeChanged(_, volume *v1.PersistentVolume) {
	c.indexVolume(volume.Name)
	c.enqueueClaimsOf(volume)
}

// indexVolume updates the index from the cache, not from an event: an event may be
// older than the cache, and the index must not return to an older version. It is called by
// the goroutine of volume events and by others, one of which may be late with what it read.
// A volume that has an owner is not free, though it has no claimRef.
func (c *Controller) indexVolume(name string) {
	for {
		volume := c.Caches.Volume(name)
		owner := c.Caches.OwnerOf(volume)
		switch {
		case volume == nil || owner != nil:
			c.index.Remove(name)
		case c.Versions.IsFresh(volume):
			c.index.Update(volume)
		}
		if c.Caches.Volume(name) == volume && c.Caches.OwnerOf(volume) == owner {
			return
		}
	}
}

// writeLost adds a volume to the index again whose reservation was lost, and enqueues the claims that waited for it.
func (c *Controller) writeLost(object metav1.Object) {
	if volume, ok := object.(*v1.PersistentVolume); ok {
		c.volumeChanged(nil, volume)
	}
}

// RecyclerEnded adds the volume to the index again, and enqueues the claims that waited for it.
func (c *Controller) RecyclerEnded(volume string) {
	if cached := c.Caches.Volume(volume); cached != nil {
		c.volumeChanged(nil, cached)
	}
}

func (c *Controller) volumeGone(volume *v1.PersistentVolume) {
	c.Versions.Forget(volume.UID)
	if c.Caches.Volume(volume.Name) == nil {
		c.index.Remove(volume.Name)
	}
	c.enqueueClaimsOf(volume)
}

func (c *Controller) enqueueClaimsOf(volume *v1.PersistentVolume) {
	if key := controller.ClaimKey(volume); key != "" {
		c.loop.Enqueue(key)
	}
	for _, claim := range c.Caches.ClaimsNaming(volume.Name) {
		c.loop.Enqueue(controller.Key(claim))
	}
}

// classChanged enqueues the claims of the class, and the claims without class if the
// class is a default class.
func (c *Controller) classChanged(_, class *storagev1.StorageClass) {
	names := []string{class.Name}
	if isDefault(class) {
		names = append(names, "")
	}
	for _, name := range names {
		c.enqueueClaimsWaitingFor(name)
	}
}

func (c *Controller) classGone(class *storagev1.StorageClass) {
	c.enqueueClaimsWaitingFor(class.Name)
}

func (c *Controller) enqueueClaimsWaitingFor(class string) {
	for _, claim := range c.Caches.ClaimsWaitingFor(class) {
		c.loop.Enqueue(controller.Key(claim))
	}
}

// podChanged enqueues the claims of a new or newly scheduled pod: the event of a claim
// that waits for its first consumer names its pods.
func (c *Controller) podChanged(old, pod *v1.Pod) {
	if old == nil || old.Spec.NodeName != pod.Spec.NodeName {
		c.podGone(pod)
	}
}

func (c *Controller) podGone(pod *v1.Pod) {
	for _, key := range pvcache.PodClaimKeys(pod) {
		claim := c.Caches.Claim(key)
		if claim != nil && claim.Spec.VolumeName == "" && storage.ClaimClass(claim) != "" {
			c.loop.Enqueue(key)
		}
	}
}
