package finalizer

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
)

// ReleasePatch is the strategic merge patch that takes the finalizer off an object
// and leaves all others, whatever they are by then.
func ReleasePatch(name Name) string {
	return fmt.Sprintf(`{"metadata":{"$deleteFromPrimitiveList/finalizers":[%q]}}`, name)
}

// ReleaseCommand is the command by which an administrator takes a finalizer off a
// claim, "" if the claim does not carry it.
func ReleaseCommand(claim *v1.PersistentVolumeClaim, name Name) string {
	if !Has(claim.Finalizers, name) {
		return ""
	}
	return fmt.Sprintf("kubectl patch pvc %s -n %s -p '%s'", claim.Name, claim.Namespace, ReleasePatch(name))
}
