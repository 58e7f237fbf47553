package provisioning

import (
	"context"
	"maps"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// Watch registers the event handlers, and returns after every claim without a volume is
// enqueued.
func (c *Controller) Watch(ctx context.Context) error {
	handlers := []controller.EventHandler{
		{Informer: c.Claims, Handler: controller.OnChange(c.claimChanged, c.claimGone)},
		{Informer: c.Volumes, Handler: controller.OnChange(c.volumeChanged, c.volumeGone)},
		{Informer: c.Classes, Handler: controller.OnChange(c.classChanged, func(*storagev1.StorageClass) {})},
	}
	if c.Attributes != nil {
		handlers = append(handlers, controller.EventHandler{
			Informer: c.Attributes, Handler: controller.OnChange(c.attributesChanged, func(*storagev1.VolumeAttributesClass) {}),
		})
	}
	return controller.RegisterHandlers(ctx, handlers...)
}

func (c *Controller) claimChanged(old, claim *v1.PersistentVolumeClaim) {
	if c.needsReconcile(old, claim) {
		c.loop.Enqueue(keyOf(controller.Key(claim), claim.UID))
	}
}

// needsReconcile reports whether the change can lead to another decision. Changes by this
// process itself do not.
func (c *Controller) needsReconcile(old, claim *v1.PersistentVolumeClaim) bool {
	_, known := c.memory.lookup(claim.UID)
	switch {
	case known && old == nil:
		return true
	case !known && (!c.isOurs(claim) || claim.Spec.VolumeName != ""):
		return false
	case old == nil:
		return true
	}
	return !maps.Equal(old.Annotations, claim.Annotations) || // names of secrets can be built from annotations
		old.Spec.VolumeName != claim.Spec.VolumeName ||
		attributesOf(old) != attributesOf(claim) ||
		(old.DeletionTimestamp == nil) != (claim.DeletionTimestamp == nil)
}

func (c *Controller) claimGone(claim *v1.PersistentVolumeClaim) {
	c.versions.Forget(claim.UID)
	c.Reporter.Forget(claim.UID)
	switch r, known := c.memory.lookup(claim.UID); {
	case known && r.claim.last != nil && (r.entry.state != provision.NoEntry ||
		r.request.creation != provision.NotRequested && r.request.creation != provision.Failed):
		c.loop.Enqueue(keyOf(controller.Key(claim), claim.UID))
	case known:
		c.memory.forget(claim.UID, c.Scope.VolumeName(claim))
	}
}

func (c *Controller) volumeChanged(_, volume *v1.PersistentVolume) {
	c.recordVolumeEvent(volume)
	c.memory.release(c.Deletion.HandleOf(volume))
}

// recordVolumeEvent records an event of the volume and returns the key of the claim with
// the volume name, "" without a record.
func (c *Controller) recordVolumeEvent(volume *v1.PersistentVolume) string {
	var claim types.UID
	if ref := volume.Spec.ClaimRef; ref != nil {
		claim = ref.UID
	}
	key, work := c.memory.recordVolumeEvent(volume.Name, claim)
	if work {
		c.loop.Enqueue(key)
	}
	return key
}

// volumeGone enqueues the claim of a deleted volume, and the claim whose volume name is free
// again.
func (c *Controller) volumeGone(volume *v1.PersistentVolume) {
	key := c.recordVolumeEvent(volume)
	if ref := volume.Spec.ClaimRef; key == "" && ref != nil &&
		c.Scope.Serves(volume.Annotations[storage.AnnDynamicallyProvisioned]) {
		key = keyOf(controller.ClaimKey(volume), ref.UID)
	}
	if key != "" {
		c.loop.Enqueue(key)
	}
}

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
		if !ok || claim.Spec.VolumeName != "" || !c.isOurs(claim) || name(claim) == "" {
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
