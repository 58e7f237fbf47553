package capacity

import (
	"strings"

	storagev1 "k8s.io/api/storage/v1"
)

// Item is what one object speaks of.
type Item struct {
	Class   string
	Segment Segment
}

// Key returns the item as the key of a queue, or of an index.
func (i Item) Key() string {
	return i.Class + "/" + string(i.Segment) // the name of a class has no slash
}

// ItemOfKey returns the item whose key it is.
func ItemOfKey(key string) Item {
	class, segment, _ := strings.Cut(key, "/")
	return Item{Class: class, Segment: Segment(segment)}
}

// ItemOf returns the item that an object speaks of. That of an object which names
// no segment is never wanted.
func ItemOf(object *storagev1.CSIStorageCapacity) Item {
	return Item{Class: object.StorageClassName, Segment: segmentOfSelector(object.NodeTopology)}
}

// Concerns says whether there shall be objects for a class of the driver. Before a
// volume of an immediate class is made, no scheduler looks at capacity, so such a
// class counts only if that is wanted.
func Concerns(driver string, class *storagev1.StorageClass, immediate bool) bool {
	if class.Provisioner != driver {
		return false
	}
	waits := class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
	return waits || immediate
}
