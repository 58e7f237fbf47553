package machines

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// mirror returns whether the mirror pod exists.
func (w *world) mirror() bool {
	_, err := w.client.CoreV1().Pods(metav1.NamespaceSystem).Get(w.Context(), "agent-mock-0", metav1.GetOptions{})
	return err == nil
}

func TestMirrorPodReturnsWhileMachineRuns(t *testing.T) {
	inWorld(t, Config{Nodes: 1}, nil, func(w *world) {
		_, err := w.client.CoreV1().Nodes().Patch(w.Context(), "mock-0", types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"cloudmock.exeunt.io/static-pods":"agent"}}}`), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		pods := w.client.CoreV1().Pods(metav1.NamespaceSystem)
		w.at(1)
		pod, err := pods.Get(w.Context(), "agent-mock-0", metav1.GetOptions{})
		if err != nil || pod.Annotations[v1.MirrorPodAnnotationKey] == "" || pod.Status.Phase != v1.PodRunning {
			t.Fatalf("mirror pod: %+v, %v", pod, err)
		}
		for at, off := range []bool{false, true} {
			if off {
				w.faults("poweredOff")
			}
			if err := pods.Delete(w.Context(), "agent-mock-0", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			w.at(float64(2 + at))
			if w.mirror() == off {
				t.Errorf("after its deletion, with the machine off: %t, the mirror pod exists: %t", off, !off)
			}
		}
		w.expect("2 mock-0 poweroff")
	})
}
