package cli

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (l *whyServer) createClaim(name string) *corev1.PersistentVolumeClaim {
	l.t.Helper()
	claim, err := l.client.CoreV1().PersistentVolumeClaims(l.namespace).Create(l.ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}},
		},
	}, metav1.CreateOptions{})
	l.must(err, "create claim")
	return claim
}

// createPod creates a running pod on the node, with the claim unless claim is "".
func (l *whyServer) createPod(name, claim string) *corev1.Pod {
	l.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{NodeName: "node", Containers: []corev1.Container{{Name: "main", Image: "image"}}},
	}
	if claim != "" {
		pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}}}
	}
	pod, err := l.client.CoreV1().Pods(l.namespace).Create(l.ctx, pod, metav1.CreateOptions{})
	l.must(err, "create pod")
	pod.Status.Phase = corev1.PodRunning
	pod, err = l.client.CoreV1().Pods(l.namespace).UpdateStatus(l.ctx, pod, metav1.UpdateOptions{})
	l.must(err, "set phase of the pod")
	return pod
}
