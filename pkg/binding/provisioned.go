package binding

import v1 "k8s.io/api/core/v1"

// ProvisionedName returns the name of the volume that is provisioned for a claim.
func ProvisionedName(claim *v1.PersistentVolumeClaim) string {
	return "pvc-" + string(claim.UID)
}
