package teardown

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// pollInterval is how often what cannot be watched is read.
const pollInterval = 20 * time.Millisecond

// createPod creates a pod that is bound to the node, if any, and has this grace.
func createPod(s *harness.Session, name, node string, grace int64) *v1.Pod {
	s.T.Helper()
	pod, err := s.Client.CoreV1().Pods(s.Namespace).Create(s.Ctx, &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1.PodSpec{NodeName: node, TerminationGracePeriodSeconds: &grace,
			Containers: []v1.Container{{Name: "main", Image: "image"}}},
	}, metav1.CreateOptions{})
	s.Must(err, "create pod")
	return pod
}

func deletePod(s *harness.Session, name string) {
	s.T.Helper()
	s.Must(s.Client.CoreV1().Pods(s.Namespace).Delete(s.Ctx, name, metav1.DeleteOptions{}), "delete pod")
}

func awaitPodGone(s *harness.Session, name string) {
	s.T.Helper()
	harness.Await(s, &v1.Pod{}, harness.ObjectName{Resource: "pods", Namespace: s.Namespace, Name: name}, "is gone",
		func(_ *v1.Pod, exists bool) bool { return !exists })
}

func TestPodsEndAsOnNodes(t *testing.T) {
	s := harness.Own(t, harness.Setup{Teardown: true})
	createPod(s, "living", "node", 2)
	createPod(s, "lost", harness.DeadNode, 1)
	createPod(s, "unbound", "", 600)
	deletePod(s, "lost")
	deletePod(s, "unbound")
	awaitPodGone(s, "unbound")
	began := time.Now()
	deletePod(s, "living")
	awaitPodGone(s, "living")
	if took := time.Since(began); took < time.Second { // deletionTimestamp has whole seconds
		t.Errorf("the pod was gone after %s, its grace is 2 s", took)
	}
	lost, err := s.Client.CoreV1().Pods(s.Namespace).Get(s.Ctx, "lost", metav1.GetOptions{})
	s.Must(err, "read the pod of a dead node")
	if lost.DeletionTimestamp == nil || time.Now().Before(lost.DeletionTimestamp.Time) {
		t.Errorf("the grace of the pod on a dead node is not over: %v", lost.DeletionTimestamp)
	}
}
