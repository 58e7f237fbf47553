package harness

import (
	"encoding/json"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// CreatePod creates a scheduled pod that uses the claim.
func (s *Session) CreatePod(claim string) *v1.Pod {
	s.T.Helper()
	pod, err := s.Client.CoreV1().Pods(s.Namespace).Create(s.Ctx, &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "pod"},
		Spec: v1.PodSpec{
			NodeName:   "node",
			Containers: []v1.Container{{Name: "main", Image: "image"}},
			Volumes: []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{
				PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
			}}},
		},
	}, metav1.CreateOptions{})
	s.Must(err, "create pod")
	return pod
}

// Annotate sets an annotation of the claim.
func (s *Session) Annotate(claim *v1.PersistentVolumeClaim, key, value string) {
	s.T.Helper()
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{key: value}}})
	s.Must(err, "encode annotation")
	_, err = s.Client.CoreV1().PersistentVolumeClaims(claim.Namespace).Patch(s.Ctx, claim.Name, types.MergePatchType, body, metav1.PatchOptions{})
	s.Must(err, "annotate claim")
}
