package capacity

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/capacity"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/topology"
)

func (c *Controller) watch() error {
	if err := c.objects.AddIndexers(objectIndexers()); err != nil {
		return fmt.Errorf("index objects: %w", err)
	}
	for _, watched := range []struct {
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{
		{c.Classes, controller.OnChange(c.classChanged, c.classGone)},
		{c.Volumes, controller.OnChange(c.volumeChanged, c.refreshVolume)},
		{c.objects, controller.OnChange(c.objectChanged, c.objectGone)},
	} {
		registration, err := watched.informer.AddEventHandler(watched.handler)
		if err != nil {
			return fmt.Errorf("add handler: %w", err)
		}
		c.synced = append(c.synced, registration.HasSynced)
	}
	synced, err := c.Segments.Watch(c.wakeSegment)
	if err != nil {
		return err
	}
	c.synced = append(c.synced, synced)
	return nil
}

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

// Refresh has the driver asked again for a class: a volume of it could not be made,
// which may be for want of space.
func (c *Controller) Refresh(class string) {
	for _, segment := range c.Segments.All() {
		c.refresh(capacity.Item{Class: class, Segment: segment})
	}
}

func (c *Controller) refreshSegment(segment topology.Segment) {
	for _, class := range c.classes() {
		c.refresh(capacity.Item{Class: class, Segment: segment})
	}
}

func (c *Controller) refresh(item capacity.Item) {
	c.memory.forget(item.Key())
	c.loop.Enqueue(item.Key())
}

// wakeSegment looks at the items of a segment that came or went.
func (c *Controller) wakeSegment(segment topology.Segment) {
	for _, class := range c.classes() {
		c.loop.Enqueue(capacity.Item{Class: class, Segment: segment}.Key())
	}
	c.wakeObjects(bySegment, string(segment)) // those of a class that has gone meanwhile
}

func (c *Controller) classChanged(_, class *storagev1.StorageClass) {
	if class.Provisioner == c.Manager.Driver {
		c.Refresh(class.Name)
	}
}

func (c *Controller) classGone(class *storagev1.StorageClass) {
	if class.Provisioner != c.Manager.Driver {
		return
	}
	for _, segment := range c.Segments.All() {
		c.loop.Enqueue(capacity.Item{Class: class.Name, Segment: segment}.Key())
	}
	c.wakeObjects(byClass, class.Name) // those of a segment that has gone meanwhile
}

func (c *Controller) wakeObjects(index, value string) {
	for _, object := range c.objectsBy(index, value) {
		c.loop.Enqueue(capacity.ItemOf(object).Key())
	}
}

func (c *Controller) objectChanged(_, object *storagev1.CSIStorageCapacity) {
	c.loop.Enqueue(capacity.ItemOf(object).Key())
}

func (c *Controller) objectGone(object *storagev1.CSIStorageCapacity) {
	c.versions.Forget(object.UID)
	c.loop.Enqueue(capacity.ItemOf(object).Key())
}

// volumeChanged: a volume came or has grown.
func (c *Controller) volumeChanged(old, volume *v1.PersistentVolume) {
	if old == nil || !old.Spec.Capacity.Storage().Equal(*volume.Spec.Capacity.Storage()) {
		c.refreshVolume(volume)
	}
}

// refreshVolume asks again where the volume is or was. Where nobody says where that
// is, it may have been anywhere in its class.
func (c *Controller) refreshVolume(volume *v1.PersistentVolume) {
	if volume.Spec.CSI == nil || volume.Spec.CSI.Driver != c.Manager.Driver {
		return
	}
	segments := capacity.SegmentsOfVolume(volume)
	for _, segment := range segments {
		c.refreshSegment(segment)
	}
	if len(segments) == 0 {
		c.Refresh(volume.Spec.StorageClassName)
	}
}
