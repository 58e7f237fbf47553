package capacity

import (
	"strings"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/pkg/topology"
)

// Item is a storage class and a topology segment. Each item has one object.
type Item struct {
	Class   string
	Segment topology.Segment
}

// Key returns the item's key in workqueues and indexes.
func (i Item) Key() string {
	return i.Class + "/" + string(i.Segment) // names of classes have no slash
}

// ItemOfKey returns the item with the key.
func ItemOfKey(key string) Item {
	class, segment, _ := strings.Cut(key, "/")
	return Item{Class: class, Segment: topology.Segment(segment)}
}

// ItemOf returns the item of an object. An object whose node topology is not a segment
// has an item that is never wanted.
func ItemOf(object *storagev1.CSIStorageCapacity) Item {
	return Item{Class: object.StorageClassName, Segment: segmentOfSelector(object.NodeTopology)}
}

// HasObjects reports whether a storage class has objects: the class is the driver's, and
// its volumes are scheduled by capacity. Without --capacity-for-immediate-binding that
// excludes classes with Immediate binding, whose volumes are created before scheduling.
func HasObjects(driver string, class *storagev1.StorageClass, immediate bool) bool {
	if class.Provisioner != driver {
		return false
	}
	waits := storage.WaitsForFirstConsumer(class)
	return waits || immediate
}
