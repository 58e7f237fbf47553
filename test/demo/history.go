package demo

import (
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// history are the versions of volumes and claims that writes returned. Writes may arrive
// in any order.
type history map[types.UID][]*unstructured.Unstructured

// add adds the object that a write returned.
func (h history) add(object *unstructured.Unstructured) {
	h[object.GetUID()] = append(h[object.GetUID()], object)
}

// has reports whether a write returned this version.
func (h history) has(uid types.UID, version string) bool {
	for _, object := range h[uid] {
		if object.GetResourceVersion() == version {
			return true
		}
	}
	return false
}

// before returns the object before the write that returned after, or nil if that is not
// known. A write that changes nothing returns the version that it found, and so does the
// write that removes the last finalizer of an object that is being deleted.
func (h history) before(after *unstructured.Unstructured) *unstructured.Unstructured {
	last := isDeleting(after) && len(after.GetFinalizers()) == 0
	var found *unstructured.Unstructured
	later := false
	for _, object := range h[after.GetUID()] {
		switch age := versionOf(after) - versionOf(object); {
		case object == after:
			later = true
		case age < 0 || age == 0 && later:
		case age == 0 && !last:
			return object
		case found == nil || versionOf(object) > versionOf(found):
			found = object
		}
	}
	return found
}

// versionOf returns the resource version as a number, which grows with each write.
func versionOf(object *unstructured.Unstructured) int64 {
	version, err := strconv.ParseInt(object.GetResourceVersion(), 10, 64)
	if err != nil { // an object that was never stored
		return 0
	}
	return version
}
