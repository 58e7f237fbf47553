package volume

import (
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/reclaim/plugin"
)

// recyclerOf returns the pod that recycled the volume for a former claim.
func recyclerOf(volume string, change ...func(*v1.Pod)) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: plugin.RecyclerPrefix + volume,
			Annotations: map[string]string{plugin.RecyclerAnnotation: "u/before"}},
		Status: v1.PodStatus{Phase: v1.PodRunning},
	}
	for _, f := range change {
		f(pod)
	}
	return pod
}

func podDeleting(pod *v1.Pod) { pod.DeletionTimestamp = &metav1.Time{} }

func podInPhase(phase v1.PodPhase) func(*v1.Pod) {
	return func(pod *v1.Pod) { pod.Status.Phase = phase }
}

func TestVolumeAwaitsItsRecyclerPod(t *testing.T) {
	nfs := func(v *v1.PersistentVolume) {
		v.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{NFS: &v1.NFSVolumeSource{Server: "nfs", Path: "/"}}
	}
	for name, tc := range map[string]struct {
		pod   *v1.Pod
		other func(*v1.PersistentVolume)
		waits bool
	}{
		"pod runs":               {recyclerOf("v"), createdByPerson, true},
		"pod is pending":         {recyclerOf("v", podInPhase(v1.PodPending)), createdByPerson, true},
		"pod is being deleted":   {recyclerOf("v", podDeleting), createdByPerson, true},
		"pod succeeded":          {recyclerOf("v", podInPhase(v1.PodSucceeded)), createdByPerson, false},
		"pod failed":             {recyclerOf("v", podInPhase(v1.PodFailed)), createdByPerson, false},
		"pod of another volume":  {recyclerOf("w"), createdByPerson, false},
		"pod of a user":          {recyclerOf("v", func(pod *v1.Pod) { pod.Namespace = "tenant" }), createdByPerson, false},
		"pod of another program": {recyclerOf("v", func(pod *v1.Pod) { pod.Annotations = nil }), createdByPerson, false},
		"no plugin recycles":     {recyclerOf("v"), nfs, false},
	} {
		t.Run(name, func(t *testing.T) { expectPhases(t, tc.pod, tc.other, tc.waits) })
	}
}

// expectPhases wants released volumes with the pod to wait, with an event, or to get the phases
// in which claims can use them.
func expectPhases(t *testing.T, pod *v1.Pod, change func(*v1.PersistentVolume), waits bool) {
	t.Helper()
	for kind, tc := range map[string]struct {
		change func(*v1.PersistentVolume)
		claim  *v1.PersistentVolumeClaim
		phase  v1.PersistentVolumePhase
	}{
		"unclaimed":              {unclaimed, nil, v1.VolumeAvailable},
		"reserved":               {reserved, nil, v1.VolumeAvailable},
		"named by its claim":     {createdByPerson, claimOfName("c", "v"), v1.VolumeBound},
		"claim is bound to else": {createdByPerson, claimOfName("c", "else"), v1.VolumeAvailable},
	} {
		want := tc.phase
		if waits {
			want = v1.VolumeReleased
		}
		s := newFixture(t, releasedVolume(retains, createdByPerson, phaseReleased, tc.change, change), pod)
		if tc.claim != nil {
			s.must(s.Caches.Claims.GetStore().Add(tc.claim))
			_, err := s.Client.CoreV1().PersistentVolumeClaims("ns").Create(t.Context(), tc.claim, metav1.CreateOptions{})
			s.must(err)
		}
		s.must(s.Reconcile(t.Context(), "v"))
		s.updateCaches()
		if phase := s.Caches.Volume("v").Status.Phase; phase != want {
			t.Errorf("%s: phase %s, want %s", kind, phase, want)
		}
		reported := slices.ContainsFunc(s.events.events, func(event string) bool {
			return strings.HasPrefix(event, "Normal RecyclerPod: Recycler pod: pod default/recycler-for-v ")
		})
		if reported != waits {
			t.Errorf("%s: events %q", kind, s.events.events)
		}
	}
}

// A bound volume does not lose its claim, and a released volume its phase.
func TestRecyclerPodDelaysNoRelease(t *testing.T) {
	s := newFixture(t, releasedVolume(retains, createdByPerson, phaseBound), recyclerOf("v"))
	s.must(s.Reconcile(t.Context(), "v"))
	s.updateCaches()
	if phase := s.Caches.Volume("v").Status.Phase; phase != v1.VolumeReleased {
		t.Errorf("phase %s", phase)
	}
}
