package snapshots

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/patch"
)

// Resource is that of VolumeSnapshots.
var Resource = schema.GroupVersionResource{Group: "snapshot.storage.k8s.io", Version: "v1", Resource: "volumesnapshots"}

// Protect adds the finalizer to a snapshot, just read, that a volume is about to be
// made from. It fails if the snapshot is gone or, without the finalizer, being
// deleted; without the right to patch snapshots, it is left unprotected, as
// upstream's sidecar does.
func (c *Controller) Protect(ctx context.Context, snapshot metav1.Object) error {
	if finalizer.Has(snapshot.GetFinalizers(), finalizer.SnapshotSource) {
		return nil
	}
	if snapshot.GetDeletionTimestamp() != nil {
		return fmt.Errorf("protect snapshot %s/%s: %w", snapshot.GetNamespace(), snapshot.GetName(), errLeaving)
	}
	err := edit(ctx, c.Metadata, snapshot, finalizer.Change{Add: []finalizer.Name{finalizer.SnapshotSource}})
	if missesRights(ctx, err) {
		return nil
	}
	return err
}

func edit(ctx context.Context, client metadata.Interface, snapshot metav1.Object, change finalizer.Change) error {
	edited := finalizer.Edit(patch.For(snapshot), snapshot, change)
	if edited.Empty() {
		return nil
	}
	body, err := edited.Bytes()
	if err != nil {
		return fmt.Errorf("encode patch of snapshot %s/%s: %w", snapshot.GetNamespace(), snapshot.GetName(), err)
	}
	_, err = client.Resource(Resource).Namespace(snapshot.GetNamespace()).Patch(ctx, snapshot.GetName(), types.JSONPatchType, body, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("patch snapshot %s/%s: %w", snapshot.GetNamespace(), snapshot.GetName(), err)
	}
	return nil
}

// missesRights says whether the request was forbidden, and logs it.
func missesRights(ctx context.Context, err error) bool {
	if !apierrors.IsForbidden(err) {
		return false
	}
	klog.FromContext(ctx).Info("Snapshots are not protected while volumes are made from them: the verbs get, list and patch of volumesnapshots are needed", "err", err)
	return true
}
