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

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
)

// boundAgain has a restored etcd show the volume as it was while its claim was bound, and lets the claim release it.
func (s *fixture) boundAgain() {
	s.t.Helper()
	restored := releasedVolume(s.Caches.Volume("v").Spec.PersistentVolumeReclaimPolicy, func(v *v1.PersistentVolume) {
		v.Status.Phase = v1.VolumeBound
		v.Finalizers = []string{string(finalizer.InTree)}
	})
	s.must(s.Client.(*fake.Clientset).Tracker().Update(v1.SchemeGroupVersion.WithResource("persistentvolumes"), restored,
		""))
	s.updateCaches()
}

// The object could not be deleted. The restored volume gets data anew.
func TestRestoredVolumeIsDeletedAgain(t *testing.T) {
	s := newFixture(t, releasedVolume(v1.PersistentVolumeReclaimDelete,
		func(v *v1.PersistentVolume) { v.Finalizers = []string{string(finalizer.InTree)} }))
	defer s.shutDown()
	refused := true
	s.Client.(*fake.Clientset).PrependReactor("delete", "persistentvolumes",
		func(clienttesting.Action) (bool, runtime.Object, error) {
			return refused, nil, errors.New("unavailable")
		})
	if err := s.Reconcile(t.Context(), "v"); err == nil || s.plugin.calls.Load() != 1 {
		t.Fatalf("Reconcile() = %v after %d calls", err, s.plugin.calls.Load())
	}
	refused = false
	s.boundAgain()
	s.reclaim()
	if calls := s.plugin.calls.Load(); calls != 2 {
		t.Errorf("%d calls, want one more for the data that was written since", calls)
	}
}

// The claimRef could not be removed. The restored volume gets data anew.
func TestRestoredVolumeIsRecycledAgain(t *testing.T) {
	volume := releasedVolume(v1.PersistentVolumeReclaimRecycle)
	pod := (&intree.HostPath{}).RecyclerPod(volume)
	pod.UID, pod.Status.Phase = "pod", v1.PodSucceeded
	s := newFixture(t, volume, pod)
	defer s.shutDown()
	refused := true
	s.Client.(*fake.Clientset).PrependReactor("patch", "persistentvolumes",
		func(action clienttesting.Action) (bool, runtime.Object, error) {
			return refused && action.GetSubresource() == "", nil, errors.New("unavailable")
		})
	_ = s.Reconcile(t.Context(), "v")
	refused = false
	s.boundAgain()
	s.memory.Update("u", func(p *progress) { p.until = time.Time{} })
	s.reclaim()
	if now := s.reclaim(); now.Spec.ClaimRef == nil || now.Spec.ClaimRef.UID == "" {
		t.Errorf("the volume is %s with data of the restored claim: claimRef %v", now.Status.Phase, now.Spec.ClaimRef)
	}
	if _, err := s.Client.CoreV1().Pods("default").Get(t.Context(), "recycler-for-v",
		metav1.GetOptions{}); apierrors.IsNotFound(err) {
		t.Error("no recycler pod removes the data that was written since")
	}
}
