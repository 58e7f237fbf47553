package deletion

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
)

// etcd is restored after a write, before the watch has shown the write. The restored versions are lower.
func TestVolumeWhoseWriteWasLostIsReconciled(t *testing.T) {
	volume := released("v")
	volume.Status.Phase, volume.Finalizers, volume.ResourceVersion = v1.VolumeBound, nil, "4999"
	restored := volume.DeepCopy()
	restored.ResourceVersion = "300"
	synctest.Test(t, func(t *testing.T) {
		client, lost := fake.NewClientset(restored), true
		client.PrependReactor("patch", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
			written := volume.DeepCopy()
			written.ResourceVersion, written.Finalizers = "5000", []string{string(finalizer.External)}
			return lost, written, nil
		})
		c := guarded(t, client, &vanishing{lose: func() {}}, volume)
		queue := c.Loops()[0].Step()
		queue.Reconcile(t.Context(), "v")
		lost = false
		if err := c.Volumes.GetStore().Update(restored); err != nil {
			t.Fatal(err)
		}
		c.onVolume(volume, restored)
		for range 3 {
			if due, later := queue.Keys(); len(due)+len(later) > 0 {
				queue.Reconcile(t.Context(), "v")
			}
			<-time.After(time.Minute)
		}
		now, err := client.CoreV1().PersistentVolumes().Get(t.Context(), "v", metav1.GetOptions{})
		if err != nil || !finalizer.Has(now.Finalizers, finalizer.External) {
			t.Errorf("finalizers %q, %v, and nothing is enqueued", now.Finalizers, err)
		}
	})
}

// etcd is restored to the version that the cache shows: no event follows the lost write.
func TestVolumeOfUnseenWriteIsReconciled(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(*v1.PersistentVolume)
		written []string
	}{
		"finalizer was added": {func(v *v1.PersistentVolume) { v.Status.Phase, v.Finalizers = v1.VolumeBound, nil }, []string{string(finalizer.External)}},
		"finalizer was removed": {func(v *v1.PersistentVolume) {
			v.Spec.PersistentVolumeReclaimPolicy, v.DeletionTimestamp = v1.PersistentVolumeReclaimRetain, new(metav1.Now())
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				volume := released("v")
				volume.Finalizers, volume.ResourceVersion = []string{string(finalizer.External)}, "300"
				tc.change(volume)
				client, lost := fake.NewClientset(volume), new(atomic.Bool)
				lost.Store(true)
				client.PrependReactor("patch", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
					written := volume.DeepCopy()
					written.ResourceVersion, written.Finalizers = "5000", tc.written
					return lost.Load(), written, nil
				})
				c := guarded(t, client, &vanishing{lose: func() {}}, volume)
				working, end := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() { c.Run(working, 1) })
				c.onVolume(nil, volume)
				<-time.After(time.Second)
				synctest.Wait()
				lost.Store(false)
				<-time.After(3 * time.Minute)
				synctest.Wait()
				now, err := client.CoreV1().PersistentVolumes().Get(t.Context(), "v", metav1.GetOptions{})
				if err != nil || !slices.Equal(now.Finalizers, tc.written) {
					t.Errorf("finalizers %q, %v, want %q", now.Finalizers, err, tc.written)
				}
				end()
				running.Wait()
			})
		})
	}
}
