package capacity

import (
	spec "github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/capacity"
	"github.com/exeunt-io/exeunt/pkg/topology"
)

func objectIndexers() cache.Indexers {
	index := func(value func(capacity.Item) string) cache.IndexFunc {
		return func(object any) ([]string, error) {
			known, ok := object.(*storagev1.CSIStorageCapacity)
			if !ok {
				return nil, nil
			}
			return []string{value(capacity.ItemOf(known))}, nil
		}
	}
	return cache.Indexers{
		byItem:    index(capacity.Item.Key),
		byClass:   index(func(item capacity.Item) string { return item.Class }),
		bySegment: index(func(item capacity.Item) string { return string(item.Segment) }),
	}
}

// RefreshRequested asks the driver again after a failed CreateVolume, for the segments of
// the request: their capacity may be exhausted. A request without segments was for all.
func (c *Controller) RefreshRequested(class string, requested *spec.TopologyRequirement) {
	for _, segment := range topology.Requested(c.Segments.All(), requested) {
		c.refresh(capacity.Item{Class: class, Segment: segment})
	}
}

// refreshClass asks the driver again for every segment of the class.
func (c *Controller) refreshClass(class string) { c.RefreshRequested(class, nil) }

func (c *Controller) refreshSegment(segment topology.Segment) {
	for _, class := range c.classes() {
		c.refresh(capacity.Item{Class: class, Segment: segment})
	}
}

func (c *Controller) refresh(item capacity.Item) {
	c.memory.forget(item.Key())
	c.loop.Enqueue(item.Key())
}

// enqueueSegment requeues the items of a segment that appeared or disappeared.
func (c *Controller) enqueueSegment(segment topology.Segment) {
	for _, class := range c.classes() {
		c.loop.Enqueue(capacity.Item{Class: class, Segment: segment}.Key())
	}
	c.enqueueObjects(bySegment, string(segment)) // objects of a class that was deleted meanwhile
}

func (c *Controller) classChanged(_, class *storagev1.StorageClass) {
	if class.Provisioner == c.Manager.Driver {
		c.refreshClass(class.Name)
	}
}

func (c *Controller) classDeleted(class *storagev1.StorageClass) {
	if class.Provisioner != c.Manager.Driver {
		return
	}
	for _, segment := range c.Segments.All() {
		c.loop.Enqueue(capacity.Item{Class: class.Name, Segment: segment}.Key())
	}
	c.enqueueObjects(byClass, class.Name) // objects of a segment that disappeared meanwhile
}

func (c *Controller) enqueueObjects(index, value string) {
	for _, object := range c.objectsBy(index, value) {
		c.loop.Enqueue(capacity.ItemOf(object).Key())
	}
}

func (c *Controller) objectChanged(_, object *storagev1.CSIStorageCapacity) {
	c.loop.Enqueue(capacity.ItemOf(object).Key())
}

func (c *Controller) objectDeleted(object *storagev1.CSIStorageCapacity) {
	c.versions.Forget(object.UID)
	c.loop.Enqueue(capacity.ItemOf(object).Key())
}

// volumeChanged handles a new or resized volume.
func (c *Controller) volumeChanged(old, volume *v1.PersistentVolume) {
	if old == nil || !old.Spec.Capacity.Storage().Equal(*volume.Spec.Capacity.Storage()) {
		c.refreshVolume(volume)
	}
}

// refreshVolume asks the driver again for the segments of the volume, or for all segments
// of its class if its node affinity names none.
func (c *Controller) refreshVolume(volume *v1.PersistentVolume) {
	if volume.Spec.CSI == nil || volume.Spec.CSI.Driver != c.Manager.Driver {
		return
	}
	segments := capacity.SegmentsOfVolume(volume)
	for _, segment := range segments {
		c.refreshSegment(segment)
	}
	if len(segments) == 0 {
		c.refreshClass(volume.Spec.StorageClassName)
	}
}
