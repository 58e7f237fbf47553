package check

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// longList is the length from which lists are searched by an index.
const longList = 32

// changed calls pair for every object of the second list that is not the same object in the
// first list. old is nil for a new object; an object of the same name with another UID is
// new.
func changed[P interface {
	*T
	metav1.Object
}, T any](before, after []P, pair func(old, now P)) {
	var index map[string]P
	for i, now := range after {
		if i < len(before) && before[i] == now {
			continue
		}
		if index == nil && len(before) > longList {
			index = byKey(before)
		}
		if old := find(before, index, now, i); old != now {
			pair(old, now)
		}
	}
}

// gone calls vanished for every object of the first list that is not in the second one.
func gone[P interface {
	*T
	metav1.Object
}, T any](before, after []P, vanished func(old P)) {
	var index map[string]P
	for i, old := range before {
		if i < len(after) && after[i] == old {
			continue
		}
		if index == nil && len(after) > longList {
			index = byKey(after)
		}
		if find(after, index, old, i) == nil {
			vanished(old)
		}
	}
}

// find returns the version of the object in the list, nil for none. hint is where it is
// likely to be; index is the index of a long list, nil for a short one.
func find[P interface {
	*T
	metav1.Object
}, T any](list []P, index map[string]P, object P, hint int) P {
	if hint < len(list) && isSame(list[hint], object) {
		return list[hint]
	}
	if index != nil {
		if found := index[keyOf(object)]; found != nil && isSame(found, object) {
			return found
		}
		return nil
	}
	for _, other := range list {
		if isSame(other, object) {
			return other
		}
	}
	return nil
}

// isSame reports whether the two are versions of one object.
func isSame(a, b metav1.Object) bool {
	return a.GetName() == b.GetName() && a.GetUID() == b.GetUID() && a.GetNamespace() == b.GetNamespace()
}

func keyOf(object metav1.Object) string { return object.GetNamespace() + "/" + object.GetName() }

func byKey[P interface {
	*T
	metav1.Object
}, T any](list []P) map[string]P {
	index := make(map[string]P, len(list))
	for _, object := range list {
		index[keyOf(object)] = object
	}
	return index
}
