package reclaimer

import (
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
	"github.com/exeunt-io/exeunt/pkg/reclaim/plugin"
)

// While the recycler pod scrubs, an administrator gives the volume to another claim.
func TestRecyclerPodEndsWhenVolumeIsGivenAway(t *testing.T) {
	for name, edit := range map[string]func(*v1.PersistentVolume){
		"policy Retain":    func(v *v1.PersistentVolume) { v.Spec.PersistentVolumeReclaimPolicy = v1.PersistentVolumeReclaimRetain },
		"claimRef removed": func(v *v1.PersistentVolume) { v.Spec.ClaimRef = nil },
		"claimRef of another claim": func(v *v1.PersistentVolume) {
			v.Spec.ClaimRef = &v1.ObjectReference{Namespace: "ns", Name: "new", UID: "n"}
		},
		"UID of claimRef removed": func(v *v1.PersistentVolume) { v.Spec.ClaimRef.UID = "" },
		"claimRef removed, Retain": func(v *v1.PersistentVolume) {
			v.Spec.ClaimRef = nil
			v.Spec.PersistentVolumeReclaimPolicy = v1.PersistentVolumeReclaimRetain
		},
	} {
		t.Run(name, func(t *testing.T) {
			volume := releasedVolume(v1.PersistentVolumeReclaimRecycle, static)
			s := newFixture(t, volume)
			defer s.shutDown()
			pod := s.runRecycler(volume)
			now, err := s.Client.CoreV1().PersistentVolumes().Get(t.Context(), "v", metav1.GetOptions{})
			s.must(err)
			edit(now)
			_, err = s.Client.CoreV1().PersistentVolumes().Update(t.Context(), now, metav1.UpdateOptions{})
			s.must(err)
			s.updateCaches()
			for range 5 {
				s.reclaim()
			}
			volume = s.Caches.Volume("v")
			if left, err := s.Client.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{}); err == nil &&
				left.Annotations[plugin.RecyclerAnnotation] == pod.Annotations[plugin.RecyclerAnnotation] {
				t.Errorf("the recycler pod still scrubs the volume, whose phase is %s and whose claimRef is %v",
					volume.Status.Phase, volume.Spec.ClaimRef)
			}
		})
	}
}

// runRecycler has the recycler pod of a released volume created, and lets it run.
func (s *fixture) runRecycler(volume *v1.PersistentVolume) *v1.Pod {
	s.t.Helper()
	s.reclaim()
	pods := s.Client.CoreV1().Pods((&intree.HostPath{}).RecyclerPod(volume).Namespace)
	pod, err := pods.Get(s.t.Context(), plugin.RecyclerName(volume), metav1.GetOptions{})
	s.must(err)
	pod.Status.Phase = v1.PodRunning
	pod, err = pods.UpdateStatus(s.t.Context(), pod, metav1.UpdateOptions{})
	s.must(err)
	return pod
}

// An administrator resets a volume: he deletes and creates it again while the pod scrubs.
func TestRecyclerPodEndsWhenVolumeIsCreatedAgain(t *testing.T) {
	volume := releasedVolume(v1.PersistentVolumeReclaimRecycle, static)
	s := newFixture(t, volume)
	defer s.shutDown()
	pod := s.runRecycler(volume)
	s.must(s.Client.CoreV1().PersistentVolumes().Delete(t.Context(), "v", metav1.DeleteOptions{}))
	s.updateCaches()
	s.volumeGone(volume)
	s.must(s.Reconcile(t.Context(), "v"))
	again := releasedVolume(v1.PersistentVolumeReclaimRecycle, static,
		func(v *v1.PersistentVolume) { v.UID, v.Spec.ClaimRef, v.Status.Phase = "u2", nil, "" })
	_, err := s.Client.CoreV1().PersistentVolumes().Create(t.Context(), again, metav1.CreateOptions{})
	s.must(err)
	s.updateCaches()
	for range 3 {
		s.reclaim()
	}
	if _, err := s.Client.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{}); err == nil {
		t.Errorf("the recycler pod of the old volume still scrubs the path of the new one, which is %s",
			s.Caches.Volume("v").Status.Phase)
	}
}

// The kubelet needs time to end the pod, which removes data until then.
func TestVolumeGivenAwayAwaitsEndOfRecyclerPod(t *testing.T) {
	for name, policy := range map[string]v1.PersistentVolumeReclaimPolicy{"Recycle": v1.PersistentVolumeReclaimRecycle,
		"Retain": v1.PersistentVolumeReclaimRetain} {
		for end, finish := range map[string]func(*fixture, *v1.Pod){"finishes": (*fixture).finishPod,
			"is gone": (*fixture).removePod} {
			t.Run(name+", pod "+end, func(t *testing.T) {
				volume := releasedVolume(v1.PersistentVolumeReclaimRecycle, static)
				s := newFixture(t, volume)
				defer s.shutDown()
				var woken []string
				s.OnRecyclerEnded(func(volume string) { woken = append(woken, volume) })
				s.runRecycler(volume)
				s.endPodsSlowly()
				now, err := s.Client.CoreV1().PersistentVolumes().Get(t.Context(), "v", metav1.GetOptions{})
				s.must(err)
				now.Spec.ClaimRef, now.Spec.PersistentVolumeReclaimPolicy = nil, policy
				_, err = s.Client.CoreV1().PersistentVolumes().Update(t.Context(), now, metav1.UpdateOptions{})
				s.must(err)
				s.updateCaches()
				for range 3 {
					s.reclaim()
				}
				pod := s.Caches.Pod("default/recycler-for-v")
				if phase := s.Caches.Volume("v").Status.Phase; phase != v1.VolumeReleased || pod.DeletionTimestamp == nil {
					t.Errorf("phase %s while the recycler pod runs, deleted %v", phase, pod.DeletionTimestamp)
				}
				if told := slices.ContainsFunc(s.events.events, func(event string) bool {
					return strings.Contains(event, "default/recycler-for-v may still remove data")
				}); !told {
					t.Errorf("events %q", s.events.events)
				}
				s.podChanged(pod)
				if len(woken) > 0 {
					t.Errorf("%q were woken while the pod runs", woken)
				}
				finish(s, pod)
				if phase := s.reclaim().Status.Phase; phase != v1.VolumeAvailable || !slices.Equal(woken, []string{"v"}) {
					t.Errorf("phase %s, woken %q", phase, woken)
				}
			})
		}
	}
}

// endPodsSlowly has deleted pods stay, as the kubelet ends them.
func (s *fixture) endPodsSlowly() {
	client := s.Client.(*fake.Clientset)
	client.PrependReactor("delete", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		pods, deletion := v1.SchemeGroupVersion.WithResource("pods"), action.(clienttesting.DeleteAction)
		object, err := client.Tracker().Get(pods, deletion.GetNamespace(), deletion.GetName())
		if err != nil {
			return true, nil, err
		}
		pod := object.(*v1.Pod).DeepCopy()
		pod.DeletionTimestamp = &metav1.Time{}
		return true, nil, client.Tracker().Update(pods, pod, pod.Namespace)
	})
}

func (s *fixture) finishPod(pod *v1.Pod) {
	pod = pod.DeepCopy()
	pod.Status.Phase = v1.PodFailed
	s.must(s.Client.(*fake.Clientset).Tracker().Update(v1.SchemeGroupVersion.WithResource("pods"), pod, pod.Namespace))
	s.updateCaches()
	s.podChanged(pod)
}

func (s *fixture) removePod(pod *v1.Pod) {
	s.must(s.Client.(*fake.Clientset).Tracker().Delete(v1.SchemeGroupVersion.WithResource("pods"), pod.Namespace,
		pod.Name))
	s.updateCaches()
	s.podGone(pod)
}

// A pod of a user that is not a recycler pod wakes no volume.
func TestOtherPodsWakeNoVolume(t *testing.T) {
	s := newFixture(t)
	defer s.shutDown()
	s.OnRecyclerEnded(func(volume string) { t.Errorf("volume %q was woken", volume) })
	s.podGone(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}})
}
