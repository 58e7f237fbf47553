package reclaimer

import (
	"context"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/pvcache"
	"github.com/exeunt-io/exeunt/pkg/reclaim/plugin"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// Names of the indexes of the cache of volumes.
const (
	// byLocation finds volumes by the location of their data.
	byLocation = "location"
	// byPlace finds volumes by the location of their data and every directory above.
	byPlace = "place"
)

func (c *Controller) addIndexes() error {
	return c.Caches.Volumes.AddIndexers(cache.Indexers{
		byLocation: indexBy(func(v *v1.PersistentVolume) []string {
			if location := c.Plugins.Location(v); location != "" {
				return []string{location}
			}
			return nil
		}),
		byPlace: indexBy(c.Plugins.Places),
	})
}

// Watch registers the event handlers, and returns once the volume of every recycler pod is
// enqueued.
func (c *Controller) Watch(ctx context.Context) error {
	return controller.RegisterHandlers(ctx,
		controller.EventHandler{Informer: c.Caches.Volumes, Handler: controller.OnChange(c.volumeChanged, c.volumeGone)},
		controller.EventHandler{Informer: c.Caches.Pods,
			Handler: controller.OnChange(func(_, pod *v1.Pod) { c.podChanged(pod) }, c.podGone)},
	)
}

func indexBy(keys func(*v1.PersistentVolume) []string) cache.IndexFunc {
	return func(object any) ([]string, error) {
		volume, ok := object.(*v1.PersistentVolume)
		if !ok {
			return nil, nil
		}
		return keys(volume), nil
	}
}

// volumeChanged counts the volume, and enqueues the volumes whose recycler pod would also remove
// the data of a new volume.
func (c *Controller) volumeChanged(old, volume *v1.PersistentVolume) {
	c.countUnprotected(volume)
	if old == nil {
		c.enqueueScrubbedAround(volume)
	}
}

// volumeGone enqueues the volumes that waited for this volume, whose data contained or was part
// of their data, and this volume if a recycler pod is left over.
func (c *Controller) volumeGone(volume *v1.PersistentVolume) {
	if policyOf(volume) == storage.PolicyDelete {
		c.Operations.Succeeded(volume.UID)
	}
	c.Operations.Abandoned(volume.UID)
	c.Waiting.Forget(volume.UID)
	c.Unprotected.Set(volume.UID, false)
	c.memory.Forget(volume.UID)
	for _, place := range c.Plugins.Places(volume) {
		for _, other := range c.volumesAt(byLocation, place) {
			if c.isWorkedOn(other) && c.hasPlugin(other) {
				c.loop.Enqueue(other.Name)
			}
		}
	}
	c.enqueueInside(volume)
	if len(c.Caches.RecyclersOf(volume.Name)) > 0 {
		c.loop.Enqueue(volume.Name)
	}
}

// hasPlugin reports whether a plugin may remove the data of the volume. Others wait for no volume, and may be many:
// each node may have a local volume at the same path.
func (c *Controller) hasPlugin(volume *v1.PersistentVolume) bool {
	_, deletes := c.Plugins.DeleterFor(volume)
	_, recycles := c.Plugins.RecyclerFor(volume)
	return deletes || recycles
}

// isWorkedOn reports whether the volume is to be reclaimed or has a recycler pod.
func (c *Controller) isWorkedOn(volume *v1.PersistentVolume) bool {
	return isReleased(volume) || len(c.Caches.RecyclersOf(volume.Name)) > 0
}

// enqueueInside enqueues the released volumes inside the volume: they wait for a volume around
// them until that volume is gone, or is to be reclaimed itself.
func (c *Controller) enqueueInside(volume *v1.PersistentVolume) {
	location := c.Plugins.Location(volume)
	if location == "" {
		return
	}
	for _, inner := range c.volumesAt(byPlace, location) {
		if inner.Name != volume.Name && isReleased(inner) && c.hasPlugin(inner) && !c.Plugins.Apart(volume, inner) {
			c.loop.Enqueue(inner.Name)
		}
	}
}

// enqueueScrubbedAround enqueues the volumes at the place of the volume or above that have a
// recycler pod.
func (c *Controller) enqueueScrubbedAround(volume *v1.PersistentVolume) {
	if !c.Caches.HasRecyclers() {
		return
	}
	for _, place := range c.Plugins.Places(volume) {
		for _, other := range c.volumesAt(byLocation, place) {
			if len(c.Caches.RecyclersOf(other.Name)) > 0 {
				c.loop.Enqueue(other.Name)
			}
		}
	}
}

// podChanged enqueues the volume of a recycler pod. A finished pod no longer uses its
// volumes.
func (c *Controller) podChanged(pod *v1.Pod) {
	if isFinished(pod) {
		c.podGone(pod)
		return
	}
	if volume, recycler := strings.CutPrefix(pod.Name, plugin.RecyclerPrefix); recycler {
		c.forgetCreation(volume, pod.UID)
		c.loop.Enqueue(volume)
	}
}

func (c *Controller) podGone(pod *v1.Pod) {
	if volume, recycler := strings.CutPrefix(pod.Name, plugin.RecyclerPrefix); recycler {
		c.forgetCreation(volume, pod.UID)
		c.loop.Enqueue(volume)
		c.wakeScrubbed(volume)
	}
	c.enqueueVolumesOf(pod)
}

// enqueueVolumesOf enqueues the volumes of the pod that are recycled once no pod uses them.
func (c *Controller) enqueueVolumesOf(pod *v1.Pod) {
	for _, claim := range pvcache.PodClaimKeys(pod) {
		for _, volume := range c.Caches.VolumesOf(claim) {
			if isReleased(volume) && policyOf(volume) == storage.PolicyRecycle {
				c.loop.Enqueue(volume.Name)
			}
		}
	}
}

// isFinished reports whether all containers of the pod have ended.
func isFinished(pod *v1.Pod) bool {
	return pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
}

// volumesAt returns the volumes at a place of the index by name: an event that names the first one has one text.
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
	slices.SortFunc(volumes, func(a, b *v1.PersistentVolume) int { return strings.Compare(a.Name, b.Name) })
	return volumes
}
