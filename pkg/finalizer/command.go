package finalizer

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// ReleaseCommand is the command by which an administrator takes a finalizer off
// a claim as it is now, "" if the claim does not carry it. It changes nothing if
// somebody else has changed the list meanwhile.
func ReleaseCommand(claim *v1.PersistentVolumeClaim, name Name) string {
	i := slices.Index(claim.Finalizers, string(name))
	if i < 0 {
		return ""
	}
	return fmt.Sprintf(`kubectl patch pvc %[1]s -n %[2]s --type=json -p='[{"op":"test","path":"/metadata/finalizers/%[3]d","value":"%[4]s"},{"op":"remove","path":"/metadata/finalizers/%[3]d"}]'`,
		claim.Name, claim.Namespace, i, name)
}
