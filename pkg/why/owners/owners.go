package owners

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Blocking returns the objects whose owner references name the owner with blockOwnerDeletion true.
func Blocking[T metav1.Object](objects []T, owner types.UID) []T {
	var found []T
	for _, object := range objects {
		if slices.ContainsFunc(object.GetOwnerReferences(),
			func(ref metav1.OwnerReference) bool { return blocks(ref) && ref.UID == owner }) {
			found = append(found, object)
		}
	}
	return found
}

// Referring returns the objects whose owner references name the owner.
func Referring[T metav1.Object](objects []T, owner types.UID) []T {
	var found []T
	for _, object := range objects {
		if slices.ContainsFunc(object.GetOwnerReferences(),
			func(ref metav1.OwnerReference) bool { return ref.UID == owner }) {
			found = append(found, object)
		}
	}
	return found
}

// IsForeground reports whether the object is being deleted in the foreground.
func IsForeground(object metav1.Object) bool {
	return object.GetDeletionTimestamp() != nil && slices.Contains(object.GetFinalizers(),
		metav1.FinalizerDeleteDependents)
}

// Cycle returns the objects that wait for the object with the UID and for which it waits,
// itself included, in the order of objects; nil if there are none.
func Cycle[T metav1.Object](objects []T, uid types.UID) []T {
	waits, waited := waitGraph(objects)
	down, up := reachable(waits, uid), reachable(waited, uid)
	if !down[uid] {
		return nil
	}
	var members []T
	for _, object := range objects {
		if down[object.GetUID()] && up[object.GetUID()] {
			members = append(members, object)
		}
	}
	return members
}

// ReferenceTo returns the index of the object's owner reference to the owner, or -1.
func ReferenceTo(object metav1.Object, owner types.UID) int {
	return slices.IndexFunc(object.GetOwnerReferences(),
		func(ref metav1.OwnerReference) bool { return blocks(ref) && ref.UID == owner })
}

func blocks(ref metav1.OwnerReference) bool {
	return ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion
}

// graph has the neighbors of each object.
type graph map[types.UID][]types.UID

// waitGraph returns for which dependents each owner waits, and the reverse.
func waitGraph[T metav1.Object](objects []T) (waits, waited graph) {
	waits, waited = graph{}, graph{}
	foreground := map[types.UID]bool{}
	for _, object := range objects {
		if IsForeground(object) {
			foreground[object.GetUID()] = true
		}
	}
	for _, object := range objects {
		for _, ref := range object.GetOwnerReferences() {
			if blocks(ref) && foreground[ref.UID] {
				waits[ref.UID] = append(waits[ref.UID], object.GetUID())
				waited[object.GetUID()] = append(waited[object.GetUID()], ref.UID)
			}
		}
	}
	return waits, waited
}

// reachable returns the objects that one or more edges lead to.
func reachable(edges graph, from types.UID) map[types.UID]bool {
	seen := map[types.UID]bool{}
	for next := []types.UID{from}; len(next) > 0; {
		var current types.UID
		current, next = next[len(next)-1], next[:len(next)-1]
		for _, neighbor := range edges[current] {
			if !seen[neighbor] {
				seen[neighbor] = true
				next = append(next, neighbor)
			}
		}
	}
	return seen
}
