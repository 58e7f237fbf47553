package machines

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
)

// attachFinalizer protects a VolumeAttachment while its disk may be attached.
const attachFinalizer = "external-attacher/disk-cloudmock-exeunt-io"

// attachWorkers is the number of attachments in work at a time.
const attachWorkers = 16

// attacher attaches and detaches as VolumeAttachments say.
type attacher struct {
	cloud *Cloud
	queue workqueue.TypedRateLimitingInterface[string]
	// handles are the disks by PersistentVolume, which may be deleted before its disk is detached.
	handles sync.Map
}

func newAttacher(c *Cloud) *attacher {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](200*time.Millisecond, 2*time.Second)
	return &attacher{cloud: c, queue: workqueue.NewTypedRateLimitingQueue(limiter)}
}

// run works until ctx ends.
func (a *attacher) run(ctx context.Context) {
	var workers sync.WaitGroup
	for range attachWorkers {
		workers.Go(func() {
			for a.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	a.queue.ShutDown()
	workers.Wait()
}

// again looks at all attachments, for faults have changed.
func (a *attacher) again() {
	for _, name := range a.cloud.views.attachments.GetIndexer().ListKeys() {
		a.queue.Forget(name)
		a.queue.Add(name)
	}
}

func (a *attacher) next(ctx context.Context) bool {
	name, shut := a.queue.Get()
	if shut {
		return false
	}
	defer a.queue.Done(name)
	err := a.sync(ctx, name)
	if err == nil || apierrors.IsNotFound(err) {
		a.queue.Forget(name)
		return true
	}
	a.queue.AddRateLimited(name)
	if !apierrors.IsConflict(err) && ctx.Err() == nil {
		a.cloud.warn(fmt.Errorf("VolumeAttachment %s: %w", name, err))
	}
	return true
}

// sync carries out one attachment.
func (a *attacher) sync(ctx context.Context, name string) error {
	attachment := get[*storagev1.VolumeAttachment](a.cloud.views.attachments, name)
	if attachment == nil || attachment.Spec.Attacher != DriverName ||
		attachment.Spec.Source.PersistentVolumeName == nil {
		return nil
	}
	m := a.cloud.byName[attachment.Spec.NodeName]
	if m == nil {
		return nil
	}
	protected := slices.Contains(attachment.Finalizers, attachFinalizer)
	switch deleted := attachment.DeletionTimestamp != nil; {
	case deleted && !protected:
		return nil
	case deleted:
		return a.detach(ctx, attachment, m)
	}
	handle, err := a.handleOf(attachment)
	if err != nil {
		return err
	}
	if attachment.Status.Attached {
		a.cloud.adopt(handle, m)
		return nil
	}
	if !protected {
		attachment, err = a.setFinalizers(ctx, attachment, append(slices.Clone(attachment.Finalizers), attachFinalizer))
		if err != nil {
			return err
		}
	}
	return a.report(ctx, attachment, a.cloud.attach(handle, m))
}

func (a *attacher) handleOf(attachment *storagev1.VolumeAttachment) (string, error) {
	name := *attachment.Spec.Source.PersistentVolumeName
	handle, known := a.cloud.handleOf(name)
	if before, was := a.handles.Load(name); !known && was {
		return before.(string), nil
	}
	if !known || handle == "" {
		return "", fmt.Errorf("PersistentVolume %s is not known as a volume of the driver", name)
	}
	a.handles.Store(name, handle)
	return handle, nil
}

// report writes whether the disk is attached.
func (a *attacher) report(ctx context.Context, attachment *storagev1.VolumeAttachment, failed error) error {
	if isSame(attachment.Status.AttachError, failed) {
		return failed
	}
	status := map[string]any{"attached": failed == nil, "attachError": volumeError(failed)}
	return errors.Join(failed, a.patchStatus(ctx, attachment, status))
}

// detach detaches the disk and removes the finalizer.
func (a *attacher) detach(ctx context.Context, attachment *storagev1.VolumeAttachment, m *machine) error {
	handle, err := a.handleOf(attachment)
	if err == nil {
		err = a.cloud.detach(handle, m)
	}
	if isSame(attachment.Status.DetachError, err) {
		return err
	}
	if err != nil {
		status := map[string]any{"detachError": volumeError(err)}
		return errors.Join(err, a.patchStatus(ctx, attachment, status))
	}
	rest := slices.DeleteFunc(slices.Clone(attachment.Finalizers), func(f string) bool { return f == attachFinalizer })
	_, err = a.setFinalizers(ctx, attachment, rest)
	return err
}

// isSame reports whether the error was written before. Each write leads to another attempt.
func isSame(before *storagev1.VolumeError, err error) bool {
	return before != nil && err != nil && before.Message == err.Error()
}

func volumeError(err error) *storagev1.VolumeError {
	if err == nil {
		return nil
	}
	return &storagev1.VolumeError{Time: metav1.Now(), Message: err.Error()}
}

// setFinalizers replaces the finalizers of the attachment that was read.
func (a *attacher) setFinalizers(ctx context.Context, attachment *storagev1.VolumeAttachment, finalizers []string) (
	*storagev1.VolumeAttachment, error) {
	return a.patch(ctx, attachment, map[string]any{"metadata": map[string]any{
		"resourceVersion": attachment.ResourceVersion, "finalizers": finalizers}})
}

func (a *attacher) patchStatus(ctx context.Context, attachment *storagev1.VolumeAttachment, status any) error {
	_, err := a.patch(ctx, attachment, map[string]any{
		"metadata": map[string]any{"uid": attachment.UID}, "status": status}, "status")
	return err
}

func (a *attacher) patch(ctx context.Context, attachment *storagev1.VolumeAttachment, change any,
	subresources ...string) (*storagev1.VolumeAttachment, error) {
	body, err := json.Marshal(change)
	if err != nil {
		return nil, err
	}
	return a.cloud.client.StorageV1().VolumeAttachments().Patch(ctx, attachment.Name, types.MergePatchType, body,
		metav1.PatchOptions{}, subresources...)
}
