package provisioning

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// Indexes of claims without a volume, by what they name.
const (
	byWaitedClass      = "waited-class"
	byWaitedAttributes = "waited-attributes"
)

// watchClasses has claims looked at again when a class that they name comes or
// changes: no claim waits for its next try then.
func (c *Controller) watchClasses() error {
	indexers := cache.Indexers{
		byWaitedClass:      c.waited(storage.ClaimClass),
		byWaitedAttributes: c.waited(attributesOf),
	}
	if err := c.Claims.AddIndexers(indexers); err != nil {
		return fmt.Errorf("index claims by class: %w", err)
	}
	classes := controller.OnChange(func(_, class *storagev1.StorageClass) { c.wake(byWaitedClass, class.Name) }, func(*storagev1.StorageClass) {})
	if _, err := c.Classes.AddEventHandler(classes); err != nil {
		return fmt.Errorf("watch classes: %w", err)
	}
	if c.Attributes == nil {
		return nil
	}
	attributes := controller.OnChange(func(_, class *storagev1.VolumeAttributesClass) { c.wake(byWaitedAttributes, class.Name) }, func(*storagev1.VolumeAttributesClass) {})
	if _, err := c.Attributes.AddEventHandler(attributes); err != nil {
		return fmt.Errorf("watch attributes classes: %w", err)
	}
	return nil
}

// waited indexes the claims without a volume by what they name.
func (c *Controller) waited(name func(*v1.PersistentVolumeClaim) string) cache.IndexFunc {
	return func(object any) ([]string, error) {
		claim, ok := object.(*v1.PersistentVolumeClaim)
		if !ok || claim.Spec.VolumeName != "" || !c.serves(claim) && !hasOrphanedFinalizer(claim) || name(claim) == "" {
			return nil, nil
		}
		return []string{name(claim)}, nil
	}
}

func (c *Controller) wake(index, name string) {
	waiting, err := c.Claims.GetIndexer().ByIndex(index, name)
	if err != nil { // there is no such index
		return
	}
	for _, object := range waiting {
		if claim, ok := object.(*v1.PersistentVolumeClaim); ok {
			c.loop.Enqueue(keyOf(controller.Key(claim), claim.UID))
		}
	}
}

func attributesOf(claim *v1.PersistentVolumeClaim) string {
	if claim.Spec.VolumeAttributesClassName == nil {
		return ""
	}
	return *claim.Spec.VolumeAttributesClassName
}
