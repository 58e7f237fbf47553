package capacity

import (
	"context"
	"errors"
	"fmt"
	"slices"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/capacity"
	"github.com/exeunt-io/exeunt/pkg/controller"
)

// execute carries out one action.
func (c *Controller) execute(ctx context.Context, item capacity.Item, o observation, action capacity.Action) error {
	switch action {
	case capacity.Ask:
		return c.ask(ctx, item, o.class)
	case capacity.Create:
		return c.create(ctx, item, o.answer)
	case capacity.Update:
		return c.update(ctx, o.objects[0], o.answer)
	case capacity.Remove:
		return c.remove(ctx, o.objects)
	case capacity.RemoveExtra:
		oldest := capacity.Oldest(o.objects)
		return c.remove(ctx, slices.Delete(o.objects, oldest, oldest+1))
	case capacity.Wait:
	}
	return nil
}

// ask calls the driver and remembers the answer.
func (c *Controller) ask(ctx context.Context, item capacity.Item, class *storagev1.StorageClass) error {
	response, err := c.Driver.GetCapacity(ctx, capacity.Request(item.Segment, class.Parameters))
	if err != nil {
		return fmt.Errorf("ask driver %s for the capacity of class %s in segment %q: %w", c.Manager.Driver, item.Class,
			item.Segment, err)
	}
	c.memory.remember(item.Key(), capacity.AnswerOf(response))
	return nil
}

func (c *Controller) create(ctx context.Context, item capacity.Item, answer capacity.Answer) error {
	object := c.Manager.Object(item, answer)
	client := c.Client.StorageV1().CSIStorageCapacities(c.Manager.Namespace)
	created, err := client.Create(ctx, object, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		created, err = c.resolveNameConflict(ctx, item, object)
	}
	if err != nil {
		return fmt.Errorf("create capacity object %s: %w", object.Name, err)
	}
	c.versions.RecordWrite(created)
	klog.FromContext(ctx).V(4).Info("Capacity object created", "object", created.Name, "class", item.Class, "segment",
		item.Segment, "bytes", answer.Bytes)
	return nil
}

// resolveNameConflict handles an existing object with the name. If the object is the
// item's own, the cache is stale; an object of another manager keeps the name, and the
// new object gets a generated one.
func (c *Controller) resolveNameConflict(ctx context.Context, item capacity.Item,
	object *storagev1.CSIStorageCapacity) (*storagev1.CSIStorageCapacity, error) {
	client := c.Client.StorageV1().CSIStorageCapacities(c.Manager.Namespace)
	existing, err := client.Get(ctx, object.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if existing.Labels[capacity.DriverLabel] == c.Manager.Driver &&
		existing.Labels[capacity.ManagerLabel] == c.Manager.ID && capacity.ItemOf(existing) == item {
		return nil, controller.ErrStaleCache
	}
	object.GenerateName, object.Name = object.Name+"-", ""
	return client.Create(ctx, object, metav1.CreateOptions{})
}

func (c *Controller) update(ctx context.Context, object *storagev1.CSIStorageCapacity, answer capacity.Answer) error {
	change := c.Manager.Update(object, answer)
	if change.Empty() {
		return nil
	}
	body, err := change.Bytes()
	if err != nil {
		return fmt.Errorf("encode patch of capacity object %s: %w", object.Name, err)
	}
	client := c.Client.StorageV1().CSIStorageCapacities(object.Namespace)
	updated, err := client.Patch(ctx, object.Name, types.JSONPatchType, body, metav1.PatchOptions{})
	switch err = controller.CheckRefusal(ctx, err, "capacity object", object, client.Get); {
	case errors.Is(err, controller.ErrGone): // the event of the deletion requeues the item
		return nil
	case err != nil:
		return fmt.Errorf("patch capacity object %s: %w", object.Name, err)
	}
	c.versions.RecordWrite(updated)
	klog.FromContext(ctx).V(4).Info("Capacity object updated", "object", object.Name, "bytes", answer.Bytes)
	return nil
}

// remove deletes the objects by UID.
func (c *Controller) remove(ctx context.Context, objects []*storagev1.CSIStorageCapacity) error {
	for _, object := range objects {
		options := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(object.UID))}
		client := c.Client.StorageV1().CSIStorageCapacities(object.Namespace)
		err := controller.CheckRefusal(ctx, client.Delete(ctx, object.Name, options), "capacity object", object, client.Get)
		if err != nil && !errors.Is(err, controller.ErrGone) {
			return fmt.Errorf("delete capacity object %s: %w", object.Name, err)
		}
		klog.FromContext(ctx).V(4).Info("Capacity object deleted", "object", object.Name)
	}
	return nil
}
