package protection

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClaimNames returns the names of the claims that a pod refers to, those of its
// generic ephemeral volumes included, in the pod's own namespace.
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

// Uses says whether the pod keeps the claim from being deleted.
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
		if ephemeral && metav1.IsControlledBy(claim, pod) && !shutDown(pod) {
			return true
		}
	}
	return false
}

// ephemeralClaim is the name of the claim that is made for a generic ephemeral volume.
func ephemeralClaim(pod *v1.Pod, volume *v1.Volume) string {
	return pod.Name + "-" + volume.Name
}

// shutDown says whether the kubelet is done with a pod, or its deletion was
// forced: only then is the grace period zero. Its volumes are no longer mounted.
func shutDown(pod *v1.Pod) bool {
	grace := pod.DeletionGracePeriodSeconds
	return pod.DeletionTimestamp != nil && grace != nil && *grace == 0
}
