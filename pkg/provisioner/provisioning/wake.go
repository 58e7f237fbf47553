package provisioning

import (
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// Indexes of claims without a volume, by storage class and by attributes class.
const (
	byWaitedClass      = "waited-class"
	byWaitedAttributes = "waited-attributes"
)

func (c *Controller) addIndexes() error {
	return c.Claims.AddIndexers(cache.Indexers{
		byWaitedClass:      c.indexWaiting(storage.ClaimClass),
		byWaitedAttributes: c.indexWaiting(attributesOf),
	})
}

// classChanged enqueues the claims of the class before their next retry.
func (c *Controller) classChanged(_, class *storagev1.StorageClass) {
	c.enqueueByIndex(byWaitedClass, class.Name)
}

func (c *Controller) attributesChanged(_, class *storagev1.VolumeAttributesClass) {
	c.enqueueByIndex(byWaitedAttributes, class.Name)
}

// indexWaiting indexes the claims without a volume by the result of name.
func (c *Controller) indexWaiting(name func(*v1.PersistentVolumeClaim) string) cache.IndexFunc {
	return func(object any) ([]string, error) {
		claim, ok := object.(*v1.PersistentVolumeClaim)
		if !ok || claim.Spec.VolumeName != "" || !c.serves(claim) || name(claim) == "" {
			return nil, nil
		}
		return []string{name(claim)}, nil
	}
}

func (c *Controller) enqueueByIndex(index, name string) {
	waiting, err := c.Claims.GetIndexer().ByIndex(index, name)
	if err != nil { // no such index
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
