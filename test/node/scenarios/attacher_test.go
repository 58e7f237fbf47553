package scenarios

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/test/node/internal/driver"
)

// attachFinalizer protects a VolumeAttachment until the disk is detached.
const attachFinalizer = "external-attacher/directory-exeunt-io"

// attacher attaches a disk to one node at a time, as VolumeAttachments say.
type attacher struct {
	*terminations
	// attached are the nodes of the disks, by PersistentVolume.
	attached map[string]string
}

// startAttacher runs an attacher until the test ends.
func (w *terminations) startAttacher(t *testing.T) {
	t.Helper()
	a := &attacher{terminations: w, attached: map[string]string{}}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if err := a.syncAll(ctx); err != nil && ctx.Err() == nil {
				t.Errorf("attacher: %v", err)
				return
			}
		}
	})
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
}

func (a *attacher) syncAll(ctx context.Context) error {
	all, err := a.Client.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, one := range all.Items {
		if one.Spec.Attacher != driver.Name {
			continue
		}
		if err := a.sync(ctx, &one); err != nil {
			return err
		}
	}
	return nil
}

// sync carries out one attachment, unless the disk is attached to another node.
func (a *attacher) sync(ctx context.Context, one *storagev1.VolumeAttachment) (err error) {
	volume, attachments := *one.Spec.Source.PersistentVolumeName, a.Client.StorageV1().VolumeAttachments()
	protected := slices.Contains(one.Finalizers, attachFinalizer)
	switch node := a.attached[volume]; {
	case one.DeletionTimestamp != nil && protected:
		delete(a.attached, volume)
		one.Finalizers = slices.DeleteFunc(one.Finalizers, func(f string) bool { return f == attachFinalizer })
		_, err = attachments.Update(ctx, one, metav1.UpdateOptions{})
		return err
	case one.DeletionTimestamp != nil, one.Status.Attached, node != "" && node != one.Spec.NodeName:
		return nil
	}
	if !protected {
		one.Finalizers = append(one.Finalizers, attachFinalizer)
		if one, err = attachments.Update(ctx, one, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	a.attached[volume] = one.Spec.NodeName
	one.Status.Attached = true
	_, err = attachments.UpdateStatus(ctx, one, metav1.UpdateOptions{})
	return err
}
