package protection

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/blocker"
)

// podOf returns a scheduled pod that uses the claim shop/data.
func podOf(name string, change ...func(*v1.Pod)) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec: v1.PodSpec{NodeName: "node", Volumes: []v1.Volume{{
			Name: "data", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}},
		}}}}
	for _, f := range change {
		f(pod)
	}
	return pod
}

func TestPodUsesClaimNamesPod(t *testing.T) {
	claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data"}}
	finished := func(pod *v1.Pod) { pod.Status.Phase = v1.PodSucceeded }
	deleted := func(pod *v1.Pod) { now := metav1.Now(); pod.DeletionTimestamp = &now }
	unscheduled := func(pod *v1.Pod) { pod.Spec.NodeName = "" }
	for name, tc := range map[string]struct {
		pods         []*v1.Pod
		holder, next string
	}{
		"running pod":     {[]*v1.Pod{podOf("web")}, "Pod shop/web", "once the pod is no longer needed: kubectl delete pod web -n shop"},
		"finished pod":    {[]*v1.Pod{podOf("job", finished)}, "Pod shop/job, which has finished and still exists", "kubectl delete pod job -n shop"},
		"pod in deletion": {[]*v1.Pod{podOf("web", deleted)}, "Pod shop/web, which is being deleted", "kubectl exeunt why pod/web -n shop"},
		"several pods": {[]*v1.Pod{podOf("b"), podOf("a"), podOf("c")}, "Pod shop/a, and 2 more",
			"once the pod is no longer needed: kubectl delete pod a -n shop"},
		"unscheduled pods": {[]*v1.Pod{podOf("web", unscheduled)}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, waits := podUsesClaim(tc.pods, claim)
			if got.Holder != tc.holder || got.Next != tc.next || waits != (tc.holder != "") {
				t.Errorf("podUsesClaim() = %+v, %v, want holder %q, next %q", got, waits, tc.holder, tc.next)
			}
			if waits && (got.Reason != blocker.PodUsesClaim || !strings.HasPrefix(got.Holder, got.Object.String())) {
				t.Errorf("podUsesClaim() = %+v", got)
			}
		})
	}
}
