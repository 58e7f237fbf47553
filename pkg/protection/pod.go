package protection

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClaimNames returns the names of the claims of a pod, in the namespace of the pod. Claims
// of generic ephemeral volumes are included.
func ClaimNames(pod *v1.Pod) []string {
	var names []string
	for i := range pod.Spec.Volumes {
		switch volume := &pod.Spec.Volumes[i]; {
		case volume.PersistentVolumeClaim != nil:
			names = append(names, volume.PersistentVolumeClaim.ClaimName)
		case volume.Ephemeral != nil:
			names = append(names, ephemeralClaim(pod, volume))
		}
	}
	return names
}

// Uses reports whether the pod uses the claim.
func Uses(pod *v1.Pod, claim *v1.PersistentVolumeClaim) bool {
	if pod.Spec.NodeName == "" || pod.Namespace != claim.Namespace {
		return false
	}
	for i := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[i]
		if volume.PersistentVolumeClaim != nil && volume.PersistentVolumeClaim.ClaimName == claim.Name {
			return true
		}
		ephemeral := volume.Ephemeral != nil && ephemeralClaim(pod, volume) == claim.Name
		if ephemeral && metav1.IsControlledBy(claim, pod) && !isTerminated(pod) {
			return true
		}
	}
	return false
}

// ephemeralClaim returns the name of the claim of a generic ephemeral volume.
func ephemeralClaim(pod *v1.Pod, volume *v1.Volume) string {
	return pod.Name + "-" + volume.Name
}

// isTerminated reports whether the kubelet has terminated the pod, or its deletion was
// forced: only then the grace period is zero. The volumes are no longer mounted.
func isTerminated(pod *v1.Pod) bool {
	grace := pod.DeletionGracePeriodSeconds
	return pod.DeletionTimestamp != nil && grace != nil && *grace == 0
}
