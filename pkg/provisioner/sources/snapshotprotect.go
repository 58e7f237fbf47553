package sources

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/patch"
)

// SnapshotResource is the resource of VolumeSnapshots.
var SnapshotResource = schema.GroupVersionResource{Group: "snapshot.storage.k8s.io", Version: "v1",
	Resource: "volumesnapshots"}

// AwaitRemoval waits while the finalizer of the source namespace/name is being removed.
func (c *Snapshots) AwaitRemoval(source string) { c.protection.AwaitRemoval(source) }

// Protect adds the finalizer to a snapshot that was just read. It returns an error if the
// snapshot is gone, or is being deleted without the finalizer. Without the right to patch or
// update snapshots, an event on the snapshot says that the snapshot is not protected.
func (c *Snapshots) Protect(ctx context.Context, snapshot metav1.Object) error {
	err := c.protection.Protect(ctx, snapshot)
	if c.mayNotWrite(ctx, snapshot.GetNamespace(), err) {
		c.warn(snapshot, "The snapshot is not protected while a volume is restored from the snapshot: the provisioner may neither patch nor update volumesnapshots")
		return nil
	}
	return err
}

func (c *Snapshots) readSource(ctx context.Context, namespace, name string) (metav1.Object, error) {
	return c.get(ctx, namespace, name)
}

// edit patches the snapshot, or updates it where patches are forbidden, and returns it as stored.
func (c *Snapshots) edit(ctx context.Context, snapshot metav1.Object, change finalizer.Change) (metav1.Object, error) {
	edited := finalizer.Edit(patch.For(snapshot), snapshot, change)
	if edited.Empty() {
		return snapshot, nil
	}
	body, err := edited.Bytes()
	if err != nil {
		return nil, fmt.Errorf("encode patch of snapshot %s/%s: %w", snapshot.GetNamespace(), snapshot.GetName(), err)
	}
	now := &metav1.PartialObjectMetadata{}
	err = c.updates.PatchOrUpdate(ctx, snapshot, body, now, func() error {
		patched, err := c.Metadata.Resource(SnapshotResource).Namespace(snapshot.GetNamespace()).
			Patch(ctx, snapshot.GetName(), types.JSONPatchType, body, metav1.PatchOptions{})
		if err == nil {
			*now = *patched
		}
		return err
	})
	err = controller.CheckRefusal(ctx, err, "snapshot", snapshot,
		func(ctx context.Context, name string, _ metav1.GetOptions) (metav1.Object, error) {
			return c.readSource(ctx, snapshot.GetNamespace(), name)
		})
	if err != nil {
		return nil, fmt.Errorf("patch snapshot %s/%s: %w", snapshot.GetNamespace(), snapshot.GetName(), err)
	}
	return now, nil
}

// mayNotWrite reports whether a write was forbidden for lack of rights. An admission webhook answers alike, and may
// answer otherwise next time.
func (c *Snapshots) mayNotWrite(ctx context.Context, namespace string, err error) bool {
	if !apierrors.IsForbidden(err) {
		return false
	}
	for _, verb := range []string{"patch", "update"} {
		if may, failed := controller.May(ctx, c.Client, verb, SnapshotResource.GroupResource(), namespace); may ||
			failed != nil {
			return false
		}
	}
	return c.isForbidden(ctx, err)
}

// isForbidden reports whether a request was forbidden, and logs the first one.
func (c *Snapshots) isForbidden(ctx context.Context, err error) bool {
	if !apierrors.IsForbidden(err) {
		return false
	}
	c.logForbidden.Do(func() {
		klog.FromContext(ctx).Error(err,
			"Snapshots are not protected while volumes are restored from them, and the finalizers of others are not removed: the verbs get, list and one of patch and update of volumesnapshots are needed")
	})
	return true
}

// protectionMissing is an event reason that external-provisioner does not have.
const protectionMissing = "SnapshotProtectionMissing"

// warn sends an event about a snapshot. The kind is given, as the scheme lacks snapshots.
func (c *Snapshots) warn(snapshot metav1.Object, message string) {
	reference := referenceTo(snapshot)
	c.Recorder.Event(&reference, v1.EventTypeWarning, protectionMissing, message)
}

func referenceTo(snapshot metav1.Object) v1.ObjectReference {
	return v1.ObjectReference{
		APIVersion: SnapshotResource.GroupVersion().String(), Kind: "VolumeSnapshot",
		Namespace: snapshot.GetNamespace(), Name: snapshot.GetName(), UID: snapshot.GetUID(),
		ResourceVersion: snapshot.GetResourceVersion(),
	}
}
