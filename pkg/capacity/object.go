package capacity

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/topology"
)

// The labels of the objects.
const (
	// DriverLabel is the name of the driver.
	DriverLabel = "csi.storage.k8s.io/drivername"
	// ManagerLabel tells the objects of one manager from those of others.
	ManagerLabel = "csi.storage.k8s.io/managed-by"
)

// Answer is what the driver said of an item.
type Answer struct {
	// Bytes are left.
	Bytes int64
	// Largest is the size of the largest volume in bytes, if Bounded.
	Largest int64
	Bounded bool
}

// AnswerOf reads the driver's response.
func AnswerOf(response *csi.GetCapacityResponse) Answer {
	answer := Answer{Bytes: response.GetAvailableCapacity()}
	if largest := response.GetMaximumVolumeSize(); largest != nil {
		answer.Largest, answer.Bounded = largest.GetValue(), true
	}
	return answer
}

// Request is the question to the driver about the segment, for a class that has
// these parameters.
func Request(segment topology.Segment, parameters map[string]string) *csi.GetCapacityRequest {
	request := &csi.GetCapacityRequest{Parameters: parameters}
	if labels := segment.Labels(); len(labels) > 0 {
		request.AccessibleTopology = &csi.Topology{Segments: labels}
	}
	return request
}

// Manager is who the objects belong to.
type Manager struct {
	// Driver is the name of the driver, ID that of the manager among all of the driver.
	Driver, ID string
	// Namespace is where the objects are.
	Namespace string
	// Owner is whose end is the end of the objects; nil for none.
	Owner *metav1.OwnerReference
}

// Labels are those that every object of the manager has.
func (m Manager) Labels() map[string]string {
	return map[string]string{DriverLabel: m.Driver, ManagerLabel: m.ID}
}

// Owns says whether the object has the owner that it shall have.
func (m Manager) Owns(object *storagev1.CSIStorageCapacity) bool {
	return m.Owner == nil || slices.ContainsFunc(object.OwnerReferences, func(owner metav1.OwnerReference) bool {
		return owner.Controller != nil && *owner.Controller && owner.UID == m.Owner.UID
	})
}

// Object returns the new object of an item. Its name follows from what it is, so
// that one whose creation went unnoticed is not made twice.
func (m Manager) Object(item Item, answer Answer) *storagev1.CSIStorageCapacity {
	object := &storagev1.CSIStorageCapacity{
		ObjectMeta:        metav1.ObjectMeta{Namespace: m.Namespace, Name: m.nameOf(item), Labels: m.Labels()},
		StorageClassName:  item.Class,
		NodeTopology:      &metav1.LabelSelector{MatchLabels: item.Segment.Labels()},
		Capacity:          answer.capacity(),
		MaximumVolumeSize: answer.largest(),
	}
	if m.Owner != nil {
		object.OwnerReferences = []metav1.OwnerReference{*m.Owner}
	}
	return object
}

func (m Manager) nameOf(item Item) string {
	sum := sha256.Sum256([]byte(m.Driver + "\x00" + m.ID + "\x00" + item.Key()))
	return "csisc-" + hex.EncodeToString(sum[:10])
}

// Update returns the patch that has the object say what the driver said, and gives
// it its owner. It is empty if nothing changes.
func (m Manager) Update(object *storagev1.CSIStorageCapacity, answer Answer) *patch.Patch {
	p := patch.ForVersion(object)
	if !equal(object.Capacity, answer.capacity()) {
		p.Set("/capacity", answer.capacity())
	}
	switch largest := answer.largest(); {
	case equal(object.MaximumVolumeSize, largest):
	case largest == nil:
		p.Remove("/maximumVolumeSize")
	default:
		p.Set("/maximumVolumeSize", largest)
	}
	if !m.Owns(object) {
		p.Set("/metadata/ownerReferences", append(slices.Clip(object.OwnerReferences), *m.Owner))
	}
	return p
}

// Says says whether the object says what the driver said.
func Says(object *storagev1.CSIStorageCapacity, answer Answer) bool {
	return equal(object.Capacity, answer.capacity()) && equal(object.MaximumVolumeSize, answer.largest())
}

func (a Answer) capacity() *resource.Quantity {
	return resource.NewQuantity(a.Bytes, resource.BinarySI)
}

func (a Answer) largest() *resource.Quantity {
	if !a.Bounded {
		return nil
	}
	return resource.NewQuantity(a.Largest, resource.BinarySI)
}

func equal(a, b *resource.Quantity) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Value() == b.Value()
}

// maxLabel is the longest value of a label that upstream uses for managers.
const maxLabel = 63

// central is the manager of a driver that is not deployed on each node.
const central = "external-provisioner"

// ManagerID returns the identity of the manager on a node, or of the one for all
// nodes if node is empty. It is upstream's, so that either takes over the objects
// of the other.
func ManagerID(node string) string {
	if node == "" {
		return central
	}
	whole := central + "-" + node
	rest := maxLabel - len("-01234567-") - len(node)
	switch {
	case len(whole) <= maxLabel:
		return whole
	case rest <= 0:
		return central + "-" + hash(whole)
	}
	return central[:rest] + "-" + hash(central) + "-" + node
}

func hash(text string) string {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(text)) // never fails
	return fmt.Sprintf("%08x", sum.Sum32())
}

// Oldest returns the index of the object that stays when there are several.
func Oldest(objects []*storagev1.CSIStorageCapacity) int {
	oldest := 0
	for i, object := range objects {
		first := objects[oldest]
		if object.CreationTimestamp.Before(&first.CreationTimestamp) ||
			object.CreationTimestamp.Equal(&first.CreationTimestamp) && object.Name < first.Name {
			oldest = i
		}
	}
	return oldest
}
