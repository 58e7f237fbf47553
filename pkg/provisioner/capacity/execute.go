package capacity

import (
	"context"
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

// ask remembers what the driver answers. If there was a reason by then to ask again,
// the answer is not remembered, and it is asked again.
func (c *Controller) ask(ctx context.Context, item capacity.Item, class *storagev1.StorageClass) error {
	turn := c.memory.turn(item.Key())
	response, err := c.Driver.GetCapacity(ctx, capacity.Request(item.Segment, class.Parameters))
	if err != nil {
		return fmt.Errorf("ask driver %s what is left for class %s in segment %q: %w", c.Manager.Driver, item.Class, item.Segment, err)
	}
	c.memory.remember(item.Key(), turn, capacity.AnswerOf(response))
	return nil
}

func (c *Controller) create(ctx context.Context, item capacity.Item, answer capacity.Answer) error {
	object := c.Manager.Object(item, answer)
	client := c.Client.StorageV1().CSIStorageCapacities(c.Manager.Namespace)
	made, err := client.Create(ctx, object, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		made, err = c.createBeside(ctx, item, object)
	}
	if err != nil {
		return fmt.Errorf("create capacity object %s: %w", object.Name, err)
	}
	c.versions.RecordWrite(made)
	klog.FromContext(ctx).V(4).Info("Capacity object created", "object", made.Name, "class", item.Class, "segment", item.Segment, "bytes", answer.Bytes)
	return nil
}

// createBeside is for a name that is taken: by the very object, which the cache has
// yet to see, or by one that is none of ours and keeps it.
func (c *Controller) createBeside(ctx context.Context, item capacity.Item, object *storagev1.CSIStorageCapacity) (*storagev1.CSIStorageCapacity, error) {
	client := c.Client.StorageV1().CSIStorageCapacities(c.Manager.Namespace)
	there, err := client.Get(ctx, object.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if there.Labels[capacity.DriverLabel] == c.Manager.Driver && there.Labels[capacity.ManagerLabel] == c.Manager.ID && capacity.ItemOf(there) == item {
		return nil, controller.ErrStaleCache
	}
	object.GenerateName, object.Name = object.Name+"-", ""
	return client.Create(ctx, object, metav1.CreateOptions{})
}

func (c *Controller) update(ctx context.Context, object *storagev1.CSIStorageCapacity, answer capacity.Answer) error {
	edited := c.Manager.Update(object, answer)
	if edited.Empty() {
		return nil
	}
	body, err := edited.Bytes()
	if err != nil {
		return fmt.Errorf("encode patch of capacity object %s: %w", object.Name, err)
	}
	now, err := c.Client.StorageV1().CSIStorageCapacities(object.Namespace).Patch(ctx, object.Name, types.JSONPatchType, body, metav1.PatchOptions{})
	switch {
	case apierrors.IsNotFound(err): // the event of its deletion comes
		return nil
	case err != nil:
		return fmt.Errorf("patch capacity object %s: %w", object.Name, err)
	}
	c.versions.RecordWrite(now)
	klog.FromContext(ctx).V(4).Info("Capacity object updated", "object", object.Name, "bytes", answer.Bytes)
	return nil
}

// remove deletes these very objects.
func (c *Controller) remove(ctx context.Context, objects []*storagev1.CSIStorageCapacity) error {
	for _, object := range objects {
		options := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(object.UID))}
		err := c.Client.StorageV1().CSIStorageCapacities(object.Namespace).Delete(ctx, object.Name, options)
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete capacity object %s: %w", object.Name, err)
		}
		klog.FromContext(ctx).V(4).Info("Capacity object deleted", "object", object.Name)
	}
	return nil
}
