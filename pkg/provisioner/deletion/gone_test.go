package deletion

import (
	"errors"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
)

// terminating returns a released volume that is being deleted and has the provisioner's
// finalizer only.
func terminating() *v1.PersistentVolume {
	volume := released("v")
	now := metav1.Now()
	volume.DeletionTimestamp, volume.Finalizers = &now, []string{string(finalizer.External)}
	return volume
}

// The event of the deletion comes after the events of the writes before it: the cache shows
// the volume as it was when it lost its last finalizer.
func TestGoneVolumeIsNotWrittenAgain(t *testing.T) {
	volume := terminating()
	client, patches := fake.NewClientset(volume), 0
	client.PrependReactor("patch", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
		patches++
		last := volume.DeepCopy()
		last.Finalizers = nil
		return true, last, nil
	})
	c := guarded(t, client, &vanishing{lose: func() {}}, volume)
	if err := c.Reconcile(t.Context(), "v"); err != nil {
		t.Error(err)
	}
	for i := range maxGoneReads {
		if err := c.Reconcile(t.Context(), "v"); !errors.Is(err, controller.ErrStaleCache) {
			t.Errorf("reconcile %d: %v, want %v", i, err, controller.ErrStaleCache)
		}
	}
	if patches != 1 {
		t.Errorf("%d patches, want 1", patches)
	}
	if err := c.Reconcile(t.Context(), "v"); err != nil || patches != 2 {
		t.Errorf("after the wait: %v, %d patches, want another patch", err, patches)
	}
	if err := c.Volumes.GetStore().Delete(volume); err != nil {
		t.Fatal(err)
	}
	c.onVolumeDeleted(volume)
	if got := c.memory.Get(volume.UID); got != (progress{}) {
		t.Errorf("progress %+v is kept after the deletion", got)
	}
}

// The event of the deletion may also come before the answer to the last write.
func TestWaitForEventEndsIfItCameBefore(t *testing.T) {
	volume := terminating()
	client := fake.NewClientset(volume)
	c := guarded(t, client, &vanishing{lose: func() {}}, volume)
	client.PrependReactor("patch", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
		if err := c.Volumes.GetStore().Delete(volume); err != nil {
			return true, nil, err
		}
		c.onVolumeDeleted(volume)
		last := volume.DeepCopy()
		last.Finalizers = nil
		return true, last, nil
	})
	if err := c.Reconcile(t.Context(), "v"); err != nil {
		t.Fatal(err)
	}
	if got := c.memory.Get(volume.UID); got != (progress{}) {
		t.Errorf("progress %+v is kept after the deletion", got)
	}
}

// Nobody would look at the volume again: no event comes of a volume that is not gone.
func TestGoneVolumeInTheCacheIsReadAgain(t *testing.T) {
	volume := released("v")
	c := guarded(t, fake.NewClientset(), &vanishing{lose: func() {}}, volume)
	if err := c.Reconcile(t.Context(), "v"); !errors.Is(err, controller.ErrStaleCache) {
		t.Errorf("error %v, want that the cache is stale", err)
	}
}

// swallowFirst has the API server say 200 to the first deletion of a volume, without effect. It returns
// the number of deletions.
func swallowFirst(client *fake.Clientset) *int {
	deletions := new(int)
	client.PrependReactor("delete", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
		*deletions++
		return *deletions == 1, nil, nil
	})
	return deletions
}

// A login page in front of the API server says 200 to a deletion that did not happen.
func TestVolumeThatIsNotBeingDeletedIsDeletedAgain(t *testing.T) {
	volume := released("v")
	volume.Finalizers = []string{string(finalizer.External)}
	client := fake.NewClientset(volume)
	deletions := swallowFirst(client)
	c := guarded(t, client, &vanishing{lose: func() {}}, volume)
	if err := c.Reconcile(t.Context(), "v"); err != nil {
		t.Error(err)
	}
	if _, err := client.CoreV1().PersistentVolumes().Get(t.Context(), "v", metav1.GetOptions{}); err == nil {
		t.Errorf("the volume is still there after %d deletions", *deletions)
	}
}

// No write follows the deletion of a volume without finalizers whose answer would show that it did not happen.
func TestObjectWithoutFinalizerIsDeletedUntilItIsGone(t *testing.T) {
	volume := released("v")
	volume.Finalizers = nil
	client := fake.NewClientset(volume)
	deletions := swallowFirst(client)
	c := guarded(t, client, &vanishing{lose: func() {}}, volume)
	queue := c.Loops()[0].Step()
	if err := c.Reconcile(t.Context(), "v"); err != nil {
		t.Error(err)
	}
	if _, later := queue.Keys(); !slices.Equal(later, []string{"v"}) {
		t.Errorf("enqueued for later: %q", later)
	}
	queue.Reconcile(t.Context(), "v")
	if _, err := client.CoreV1().PersistentVolumes().Get(t.Context(), "v", metav1.GetOptions{}); err == nil {
		t.Errorf("the volume is still there after %d deletions", *deletions)
	}
}
