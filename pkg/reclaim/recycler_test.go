package reclaim_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	. "github.com/exeunt-io/exeunt/pkg/reclaim"
)

func TestRecyclerOf(t *testing.T) {
	volume := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v", UID: "u"}}
	volume.Spec.ClaimRef = &v1.ObjectReference{UID: "c"}
	made := func(mark string, phase v1.PodPhase, change ...func(*v1.Pod)) *v1.Pod {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{RecyclesAnnotation: mark}}, Status: v1.PodStatus{Phase: phase}}
		for _, f := range change {
			f(pod)
		}
		return pod
	}
	going := func(pod *v1.Pod) { pod.DeletionTimestamp = &metav1.Time{} }
	for name, tc := range map[string]struct {
		pod  *v1.Pod
		want Recycler
	}{
		"no pod":                              {nil, NoRecycler},
		"a pod without our mark":              {&v1.Pod{Status: v1.PodStatus{Phase: v1.PodSucceeded}}, ForeignRecycler},
		"a pod of another volume of the name": {made("other/c", v1.PodSucceeded), ForeignRecycler},
		"a pod of the claim before":           {made("u/before", v1.PodSucceeded), ForeignRecycler},
		"a new pod":                           {made("u/c", ""), RecyclerRuns},
		"a pod that waits for a node":         {made("u/c", v1.PodPending), RecyclerRuns},
		"a pod that runs":                     {made("u/c", v1.PodRunning), RecyclerRuns},
		"a pod that nobody hears from":        {made("u/c", v1.PodUnknown), RecyclerRuns},
		"a pod that succeeded":                {made("u/c", v1.PodSucceeded), RecyclerSucceeded},
		"a pod that failed":                   {made("u/c", v1.PodFailed), RecyclerFailed},
		"a pod that succeeded and is going":   {made("u/c", v1.PodSucceeded, going), RecyclerGoing},
		"somebody's pod that is going":        {made("", v1.PodRunning, going), RecyclerGoing},
	} {
		t.Run(name, func(t *testing.T) {
			if got := RecyclerOf(tc.pod, volume); got != tc.want {
				t.Errorf("RecyclerOf = %v, want %v", got, tc.want)
			}
		})
	}
	if RecyclerMark(&v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{UID: "u"}}) == RecyclerMark(volume) {
		t.Error("the mark does not tell which claim's data it is about")
	}
}
