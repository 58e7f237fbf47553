package volume

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/reclaim"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// Names of the indexes of the cache of volumes.
const (
	// byLocation finds volumes whose data is exactly there.
	byLocation = "location"
	// byPlace finds volumes whose data is there or below.
	byPlace = "place"
)

func (c *Controller) watch() error {
	err := c.Caches.Volumes.AddIndexers(cache.Indexers{
		byLocation: c.index(func(v *v1.PersistentVolume) []string { return present(c.Plugins.Location(v)) }),
		byPlace:    c.index(c.Plugins.Places),
	})
	if err != nil {
		return fmt.Errorf("add index: %w", err)
	}
	for informer, handler := range map[cache.SharedIndexInformer]cache.ResourceEventHandler{
		c.Caches.Volumes: controller.OnChange(c.volumeChanged, c.volumeGone),
		c.Caches.Claims:  controller.OnChange(c.claimChanged, c.claimGone),
		c.Caches.Pods:    controller.OnChange(func(_, pod *v1.Pod) { c.podChanged(pod) }, c.podGone),
	} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return fmt.Errorf("add handler: %w", err)
		}
	}
	return nil
}

func (c *Controller) index(keys func(*v1.PersistentVolume) []string) cache.IndexFunc {
	return func(object any) ([]string, error) {
		volume, ok := object.(*v1.PersistentVolume)
		if !ok {
			return nil, nil
		}
		return keys(volume), nil
	}
}

// present is the key alone, or nothing for a volume that has none.
func present(key string) []string {
	if key == "" {
		return nil
	}
	return []string{key}
}

func (c *Controller) volumeChanged(_, volume *v1.PersistentVolume) {
	c.loop.Enqueue(volume.Name)
}

// volumeGone wakes the volumes that were not deleted because their data contains
// this one's, and has a recycler pod that is left over removed.
func (c *Controller) volumeGone(volume *v1.PersistentVolume) {
	if policyOf(volume) == storage.PolicyDelete {
		c.Operations.Succeeded(volume.UID)
	}
	c.Operations.Abandoned(volume.UID)
	c.Versions.Forget(volume.UID)
	c.Reporter.Forget(volume.UID)
	c.memory.Forget(volume.UID)
	for _, place := range c.Plugins.Places(volume) {
		for _, other := range c.volumesAt(byLocation, place) {
			c.reclaims.Enqueue(other.Name)
		}
	}
	if len(c.Caches.RecyclersOf(volume.Name)) > 0 {
		c.reclaims.Enqueue(volume.Name)
	}
}

// claimChanged wakes the volumes that refer to a claim once it is new, or names
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

// podChanged wakes the volume that a recycler pod is about. A pod that has
// finished no longer uses its volumes.
func (c *Controller) podChanged(pod *v1.Pod) {
	if volume, recycler := strings.CutPrefix(pod.Name, reclaim.RecyclerPrefix); recycler {
		c.reclaims.Enqueue(volume)
	}
	if finished(pod) {
		c.podReleases(pod)
	}
}

func (c *Controller) podGone(pod *v1.Pod) {
	if volume, recycler := strings.CutPrefix(pod.Name, reclaim.RecyclerPrefix); recycler {
		c.reclaims.Enqueue(volume)
	}
	c.podReleases(pod)
}

// podReleases wakes the volumes that are recycled only once no pod uses them.
func (c *Controller) podReleases(pod *v1.Pod) {
	for _, claim := range controller.PodClaimKeys(pod) {
		for _, volume := range c.Caches.VolumesOf(claim) {
			if isOver(volume) && policyOf(volume) == storage.PolicyRecycle {
				c.reclaims.Enqueue(volume.Name)
			}
		}
	}
}

// finished says whether all containers of the pod have ended.
func finished(pod *v1.Pod) bool {
	return pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
}

func (c *Controller) volumesAt(index, place string) []*v1.PersistentVolume {
	objects, err := c.Caches.Volumes.GetIndexer().ByIndex(index, place)
	if err != nil {
		return nil
	}
	var volumes []*v1.PersistentVolume
	for _, object := range objects {
		if volume, ok := object.(*v1.PersistentVolume); ok {
			volumes = append(volumes, volume)
		}
	}
	return volumes
}
