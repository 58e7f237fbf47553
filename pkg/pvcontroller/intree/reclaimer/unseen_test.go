package reclaimer

import (
	"errors"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/reclaim/plugin"
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
	s.memory.Update(volume.UID, func(p *progress) { p.created.at = p.created.at.Add(-unseenPod) })
	if phase := s.reclaim().Status.Phase; phase != v1.VolumeAvailable || !slices.Equal(woken, []string{"v"}) {
		t.Errorf("phase %s once the pod must have ended, woken %q", phase, woken)
	}
}

// The watch of pods is late for longer than a minute, and the pod still removes data.
func TestUnseenRecyclerPodIsReadBeforeItCountsAsGone(t *testing.T) {
	volume := releasedVolume(v1.PersistentVolumeReclaimRecycle, static)
	s := newFixture(t, volume)
	defer s.shutDown()
	s.must(s.Reconcile(t.Context(), "v"))
	pod, err := s.Client.CoreV1().Pods("default").Get(t.Context(), "recycler-for-v", metav1.GetOptions{})
	s.must(err)
	s.removeClaimRef()
	later := func() {
		s.memory.Update(volume.UID, func(p *progress) { p.created.at = p.created.at.Add(-unseenPod) })
		s.must(s.Caches.Pods.GetStore().Replace(nil, ""))
		s.must(s.Reconcile(t.Context(), "v"))
	}
	for range 2 {
		if later(); s.ScrubbingPod(volume) == "" {
			t.Fatal("the pod counts as gone, and runs")
		}
	}
	s.removePodUnseen(pod)
	if later(); s.ScrubbingPod(volume) != "" {
		t.Error("the pod counts as running, and is gone")
	}
}

// An administrator gives the volume away while the API server answers whether its recycler pod may be created.
func TestRefusedRecyclerPodWakesVolume(t *testing.T) {
	volume := releasedVolume(v1.PersistentVolumeReclaimRecycle, static)
	s := newFixture(t, volume)
	defer s.shutDown()
	var woken []string
	s.OnRecyclerEnded(func(volume string) { woken = append(woken, volume) })
	s.Client.(*fake.Clientset).PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		if s.ScrubbingPod(volume) == "" || len(woken) > 0 {
			t.Errorf("the volume is free during the request, woken %q", woken)
		}
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "recycler-for-v",
			errors.New("quota"))
	})
	s.must(s.Reconcile(t.Context(), "v"))
	if s.ScrubbingPod(volume) != "" || !slices.Equal(woken, []string{"v"}) {
		t.Errorf("woken %q after the refusal", woken)
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

// recycleAgain has the first pod of the volume fail and the second one created, whose event is late.
func (s *fixture) recycleAgain() (first *v1.Pod) {
	s.t.Helper()
	s.must(s.Reconcile(s.t.Context(), "v"))
	s.updateCaches()
	first = s.Caches.Pod("default/recycler-for-v")
	s.podChanged(first)
	s.finishPod(first)
	for range 2 { // deletes the first pod, creates the second one
		s.memory.Update("u", func(p *progress) { p.until = time.Time{} })
		s.must(s.Reconcile(s.t.Context(), "v"))
	}
	second, err := s.Client.CoreV1().Pods("default").Get(s.t.Context(), "recycler-for-v", metav1.GetOptions{})
	if s.must(err); second.UID == first.UID {
		s.t.Fatal("no second pod was created")
	}
	return first
}

func TestUnseenPodCountsBesideFormerPod(t *testing.T) {
	for name, event := range map[string]func(*fixture, *v1.Pod){
		"no event":                   func(*fixture, *v1.Pod) {},
		"late event of former pod":   func(s *fixture, former *v1.Pod) { s.podChanged(former) },
		"late failure of former pod": func(s *fixture, _ *v1.Pod) { s.podChanged(s.Caches.Pod("default/recycler-for-v")) },
		"late end of former pod": func(s *fixture, former *v1.Pod) {
			s.must(s.Caches.Pods.GetStore().Delete(former))
			s.podGone(former)
		},
	} {
		t.Run(name, func(t *testing.T) {
			volume := releasedVolume(v1.PersistentVolumeReclaimRecycle, static)
			s := newFixture(t, volume)
			defer s.shutDown()
			event(s, s.recycleAgain())
			if key := s.ScrubbingPod(volume); key != "default/recycler-for-v" {
				t.Errorf("pod %q counts as scrubbing while the second pod is unseen", key)
			}
			s.updateCaches()
			second := s.Caches.Pod("default/recycler-for-v")
			s.podChanged(second)
			s.removePod(second)
			if key := s.ScrubbingPod(volume); key != "" {
				t.Errorf("pod %s counts as scrubbing, and is gone", key)
			}
		})
	}
}

// Anybody who may create pods can give one the name of a recycler pod.
func TestPodOfAnotherProgramDoesNotScrub(t *testing.T) {
	for data, want := range map[string]string{"x": "", "u/c": "default/recycler-for-v"} {
		volume := releasedVolume(v1.PersistentVolumeReclaimRecycle, static)
		s := newFixture(t, volume, &v1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceDefault, Name: "recycler-for-v", UID: "p",
			Annotations: map[string]string{plugin.RecyclerAnnotation: data},
		}})
		if key := s.ScrubbingPod(volume); key != want || (len(s.Caches.RecyclersOf("v")) > 0) != (want != "") {
			t.Errorf("pod %q with annotation %q counts as scrubbing, want %q", key, data, want)
		}
		s.shutDown()
	}
}

func TestFailedCreationCountsUnlessRefused(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	refused := apierrors.NewForbidden(pods, "recycler-for-v", errors.New("quota"))
	for name, tc := range map[string]struct {
		errs []error
		want bool
	}{
		"no answer":                {[]error{errors.New("timeout")}, true},
		"server error":             {[]error{apierrors.NewInternalError(errors.New("busy"))}, true},
		"no answer, then conflict": {[]error{errors.New("timeout"), apierrors.NewAlreadyExists(pods, "recycler-for-v")}, true},
		"no answer, then refused":  {[]error{errors.New("timeout"), refused}, true},
		"refused":                  {[]error{refused}, false},
	} {
		t.Run(name, func(t *testing.T) {
			volume := releasedVolume(v1.PersistentVolumeReclaimRecycle, static)
			s := newFixture(t, volume)
			defer s.shutDown()
			for _, err := range tc.errs {
				s.Client.(*fake.Clientset).PrependReactor("create", "pods",
					func(clienttesting.Action) (bool, runtime.Object, error) {
						return true, nil, err
					})
				s.memory.Update("u", func(p *progress) { p.until = time.Time{} })
				if err := s.Reconcile(t.Context(), "v"); err != nil && !errors.Is(err, controller.ErrStaleCache) {
					t.Fatal(err)
				}
				s.updateCaches()
			}
			if key := s.ScrubbingPod(volume); (key != "") != tc.want {
				t.Errorf("pod %q counts as scrubbing, want %v", key, tc.want)
			}
		})
	}
}
