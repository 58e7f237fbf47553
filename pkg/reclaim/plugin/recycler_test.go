package plugin_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	. "github.com/exeunt-io/exeunt/pkg/reclaim/plugin"
)

func TestRecyclerOf(t *testing.T) {
	volume := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v", UID: "u"}}
	volume.Spec.ClaimRef = &v1.ObjectReference{UID: "c"}
	podFor := func(data string, phase v1.PodPhase, change ...func(*v1.Pod)) *v1.Pod {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{RecyclerAnnotation: data}},
			Status: v1.PodStatus{Phase: phase}}
		for _, f := range change {
			f(pod)
		}
		return pod
	}
	deleting := func(pod *v1.Pod) { pod.DeletionTimestamp = &metav1.Time{} }
	for name, tc := range map[string]struct {
		pod  *v1.Pod
		want Recycler
	}{
		"no pod":                      {nil, RecyclerNone},
		"pod without annotation":      {&v1.Pod{Status: v1.PodStatus{Phase: v1.PodSucceeded}}, RecyclerForeign},
		"pod of another volume":       {podFor("other/c", v1.PodSucceeded), RecyclerOutdated},
		"pod of an earlier claim":     {podFor("u/before", v1.PodSucceeded), RecyclerOutdated},
		"new pod":                     {podFor("u/c", ""), RecyclerRunning},
		"pending pod":                 {podFor("u/c", v1.PodPending), RecyclerRunning},
		"running pod":                 {podFor("u/c", v1.PodRunning), RecyclerRunning},
		"unknown pod":                 {podFor("u/c", v1.PodUnknown), RecyclerRunning},
		"succeeded pod":               {podFor("u/c", v1.PodSucceeded), RecyclerSucceeded},
		"failed pod":                  {podFor("u/c", v1.PodFailed), RecyclerFailed},
		"succeeded pod being deleted": {podFor("u/c", v1.PodSucceeded, deleting), RecyclerDeleting},
		"foreign pod being deleted":   {podFor("", v1.PodRunning, deleting), RecyclerDeleting},
	} {
		t.Run(name, func(t *testing.T) {
			if got := RecyclerOf(tc.pod, volume); got != tc.want {
				t.Errorf("RecyclerOf = %v, want %v", got, tc.want)
			}
		})
	}
	if DataID(&v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{UID: "u"}}) == DataID(volume) {
		t.Error("DataID does not depend on the claim")
	}
}

func TestUnfinishedRecyclerPodScrubs(t *testing.T) {
	for name, tc := range map[string]struct {
		phase          v1.PodPhase
		ours, deleting bool
		want           bool
	}{
		"new pod":                     {"", true, false, true},
		"pending pod":                 {v1.PodPending, true, false, true},
		"running pod":                 {v1.PodRunning, true, false, true},
		"running pod being deleted":   {v1.PodRunning, true, true, true},
		"succeeded pod":               {v1.PodSucceeded, true, false, false},
		"succeeded pod being deleted": {v1.PodSucceeded, true, true, false},
		"failed pod":                  {v1.PodFailed, true, false, false},
		"failed pod being deleted":    {v1.PodFailed, true, true, false},
		"foreign pod":                 {v1.PodRunning, false, false, false},
		"foreign pod being deleted":   {v1.PodRunning, false, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &v1.Pod{Status: v1.PodStatus{Phase: tc.phase}}
			if tc.ours {
				pod.Annotations = map[string]string{RecyclerAnnotation: "u/c"}
			}
			if tc.deleting {
				pod.DeletionTimestamp = &metav1.Time{}
			}
			if got := Scrubs(pod); got != tc.want {
				t.Errorf("Scrubs() = %v, want %v", got, tc.want)
			}
		})
	}
	for data, want := range map[string]bool{"u/c": true, "x": false, "/": false, "u/": false, "/c": false,
		"u/c/d": false} {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{RecyclerAnnotation: data}}}
		volume := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{UID: "u"}}
		if ours := RecyclerOf(pod, volume) != RecyclerForeign; Scrubs(pod) != want || ours != want {
			t.Errorf("a pod with annotation %q scrubs: %v, is ours: %v, want %v", data, Scrubs(pod), ours, want)
		}
	}
	if Scrubs(nil) {
		t.Error("a missing pod scrubs")
	}
}
