package reclaimer

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An administrator gives the volume away right after its recycler pod was created. The watch of pods
// is late, or shows neither the pod nor its end.
func TestUnseenRecyclerPodKeepsVolume(t *testing.T) {
	volume := releasedVolume(v1.PersistentVolumeReclaimRecycle, static)
	s := newFixture(t, volume)
	defer s.shutDown()
	var woken []string
	s.OnRecyclerEnded(func(volume string) { woken = append(woken, volume) })
	s.must(s.Reconcile(t.Context(), "v"))
	pods, err := s.Client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	s.must(err)
	if len(pods.Items) != 1 {
		t.Fatalf("%d recycler pods", len(pods.Items))
	}
	s.removePodUnseen(&pods.Items[0])
	now, err := s.Client.CoreV1().PersistentVolumes().Get(t.Context(), "v", metav1.GetOptions{})
	s.must(err)
	now.Spec.ClaimRef = nil
	_, err = s.Client.CoreV1().PersistentVolumes().Update(t.Context(), now, metav1.UpdateOptions{})
	s.must(err)
	s.updateCaches()
	if phase := s.reclaim().Status.Phase; phase != v1.VolumeReleased || len(woken) > 0 {
		t.Errorf("phase %s while the recycler pod may scrub, woken %q", phase, woken)
	}
	s.memory.Update(volume.UID, func(p *progress) { p.createdAt = p.createdAt.Add(-unseenPod) })
	if phase := s.reclaim().Status.Phase; phase != v1.VolumeAvailable || !slices.Equal(woken, []string{"v"}) {
		t.Errorf("phase %s once the pod must have ended, woken %q", phase, woken)
	}
}

// The watch has shown the pod and its end.
func TestSeenRecyclerPodIsNotAwaited(t *testing.T) {
	volume := releasedVolume(v1.PersistentVolumeReclaimRecycle, static)
	s := newFixture(t, volume)
	defer s.shutDown()
	s.must(s.Reconcile(t.Context(), "v"))
	s.updateCaches()
	pod := s.Caches.Pod("default/recycler-for-v")
	s.podChanged(pod)
	s.removePod(pod)
	if key := s.ScrubbingPod(volume); key != "" {
		t.Errorf("pod %s counts as scrubbing, and is gone", key)
	}
}

// removePodUnseen removes the pod from the API server only: the cache never had it.
func (s *fixture) removePodUnseen(pod *v1.Pod) {
	s.must(s.Client.CoreV1().Pods(pod.Namespace).Delete(s.t.Context(), pod.Name, metav1.DeleteOptions{}))
}
