package reclaimer

import (
	"errors"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// swallowFirst has the API server say 200 to the first deletion of the resource, without effect, as a login page does.
func (s *fixture) swallowFirst(resource string) {
	deletions := 0
	s.Client.(*fake.Clientset).PrependReactor("delete", resource,
		func(clienttesting.Action) (bool, runtime.Object, error) {
			deletions++
			return deletions == 1, nil, nil
		})
}

// The volume must not keep a recycler pod that removes data which the administrator wants to keep.
func TestRecyclerPodIsDeletedUntilItIsGone(t *testing.T) {
	s := newFixture(t, releasedVolume(v1.PersistentVolumeReclaimRecycle))
	s.RequeueAfter = time.Minute
	queue := s.Loops()[0].Step()
	s.reclaim()
	volume := s.Caches.Volume("v").DeepCopy()
	volume.Spec.PersistentVolumeReclaimPolicy = v1.PersistentVolumeReclaimRetain
	_, err := s.Client.CoreV1().PersistentVolumes().Update(t.Context(), volume, metav1.UpdateOptions{})
	s.must(err)
	s.updateCaches()
	pod, err := s.Client.CoreV1().Pods("default").Get(t.Context(), "recycler-for-v", metav1.GetOptions{})
	s.must(err)
	s.forgetCreation("v", pod.UID) // the watch has shown the pod
	s.swallowFirst("pods")
	for queue.Reconcile(t.Context(), "v"); ; {
		_, later := queue.Keys()
		if len(later) == 0 {
			break
		}
		queue.Reconcile(t.Context(), later[0])
		s.updateCaches()
	}
	if _, err := s.Client.CoreV1().Pods("default").Get(t.Context(), "recycler-for-v",
		metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the recycler pod is still there: %v", err)
	}
}

// The answer to the deletion of an object says nothing about it.
func TestObjectIsDeletedUntilItIsGone(t *testing.T) {
	s := newFixture(t, releasedVolume(v1.PersistentVolumeReclaimDelete, static))
	s.swallowFirst("persistentvolumes")
	if err := s.Reconcile(t.Context(), "v"); err == nil {
		t.Error("no error: nobody would look at the volume again")
	}
	s.must(s.Reconcile(t.Context(), "v"))
	if _, err := s.Client.CoreV1().PersistentVolumes().Get(t.Context(), "v",
		metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the volume is still there: %v", err)
	}
	if calls := s.plugin.calls.Load(); calls != 1 {
		t.Errorf("the plugin was called %d times", calls)
	}
}

// Nobody would look at the volume again: no event comes of a volume that is not gone.
func TestGoneVolumeInTheCacheIsReadAgain(t *testing.T) {
	volume := releasedVolume(v1.PersistentVolumeReclaimDelete)
	s := newFixture(t)
	s.must(s.Caches.Volumes.GetStore().Add(volume))
	if err := s.Reconcile(t.Context(), "v"); !errors.Is(err, controller.ErrStaleCache) {
		t.Errorf("Reconcile() = %v, want %v", err, controller.ErrStaleCache)
	}
}
