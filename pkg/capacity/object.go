package capacity

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/pkg/topology"
)

// Labels of the objects, as in csi-provisioner.
const (
	// DriverLabel is the name of the driver.
	DriverLabel = "csi.storage.k8s.io/drivername"
	// ManagerLabel is the ID of the manager that owns the object.
	ManagerLabel = "csi.storage.k8s.io/managed-by"
)

// Answer is the driver's answer for an item.
type Answer struct {
	// Bytes is the available capacity.
	Bytes int64
	// Largest is the maximum volume size in bytes, if Bounded.
	Largest int64
	Bounded bool
}

// AnswerOf returns the answer in the driver's response.
func AnswerOf(response *csi.GetCapacityResponse) Answer {
	answer := Answer{Bytes: response.GetAvailableCapacity()}
	if largest := response.GetMaximumVolumeSize(); largest != nil {
		answer.Largest, answer.Bounded = largest.GetValue(), true
	}
	return answer
}

// Request returns the GetCapacity request for the segment and the parameters of a class.
func Request(segment topology.Segment, parameters map[string]string) *csi.GetCapacityRequest {
	request := &csi.GetCapacityRequest{Parameters: parameters}
	if labels := segment.Labels(); len(labels) > 0 {
		request.AccessibleTopology = &csi.Topology{Segments: labels}
	}
	return request
}

// Manager is the provisioner that writes the objects.
type Manager struct {
	// Driver is the name of the driver; ID distinguishes the managers of one driver.
	Driver, ID string
	// Namespace is the namespace of the objects.
	Namespace string
	// Owner is set as ownerReference, so that the objects are garbage-collected with the
	// owner; nil for none.
	Owner *metav1.OwnerReference
}

// Labels returns the labels of every object of the manager.
func (m Manager) Labels() map[string]string {
	return map[string]string{DriverLabel: m.Driver, ManagerLabel: m.ID}
}

// Owns reports whether the object has the owner reference of the manager.
func (m Manager) Owns(object *storagev1.CSIStorageCapacity) bool {
	return m.Owner == nil || slices.ContainsFunc(object.OwnerReferences, func(owner metav1.OwnerReference) bool {
		return owner.Controller != nil && *owner.Controller && owner.UID == m.Owner.UID
	})
}

// Object returns a new object for an item. The name is derived from the item, so that a
// creation whose answer was lost is not repeated under another name.
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

// withoutController returns the owners that are no controllers: an object has at most one, and a
// former one may be an old ReplicaSet of the manager.
func (m Manager) withoutController(owners []metav1.OwnerReference) []metav1.OwnerReference {
	if m.Owner.Controller == nil || !*m.Owner.Controller {
		return slices.Clip(owners)
	}
	return slices.DeleteFunc(slices.Clone(owners), func(owner metav1.OwnerReference) bool {
		return owner.Controller != nil && *owner.Controller
	})
}

// Update returns the patch that writes the answer and the owner reference. The patch is
// empty if nothing changes.
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
		p.Set("/metadata/ownerReferences", append(m.withoutController(object.OwnerReferences), *m.Owner))
	}
	return p
}

// HasAnswer reports whether the object has the driver's answer.
func HasAnswer(object *storagev1.CSIStorageCapacity, answer Answer) bool {
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

// maxLabel is the maximum length of a label value.
const maxLabel = 63

// central is the manager ID without --node-deployment.
const central = "external-provisioner"

// ManagerID returns the ID of the manager on a node, or of the manager of all nodes if
// node is empty. csi-provisioner derives the same ID, so that either program takes over
// the objects of the other.
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

// Oldest returns the index of the oldest object, the first by name among equals.
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

// SegmentOfNode returns the topology segment of a node for the driver, and false if the
// driver does not run on the node or the node still lacks a label of a topology key.
func SegmentOfNode(driver string, csiNode *storagev1.CSINode, node *v1.Node) (topology.Segment, bool) {
	if csiNode == nil || node == nil {
		return "", false
	}
	drivers := csiNode.Spec.Drivers
	at := slices.IndexFunc(drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == driver })
	if at < 0 {
		return "", false
	}
	return topology.SegmentWithKeys(node.Labels, drivers[at].TopologyKeys)
}

// noSegment stands for a label selector that is not a segment. No node lies in it.
const noSegment topology.Segment = "?"

// segmentOfSelector returns the segment of an object's node topology.
func segmentOfSelector(selector *metav1.LabelSelector) topology.Segment {
	if selector == nil || len(selector.MatchExpressions) > 0 {
		return noSegment
	}
	return topology.SegmentOf(selector.MatchLabels)
}

// SegmentsOfVolume returns the segments in the node affinity of a volume. Terms that are
// not a segment are left out.
func SegmentsOfVolume(volume *v1.PersistentVolume) []topology.Segment {
	affinity := volume.Spec.NodeAffinity
	if affinity == nil || affinity.Required == nil {
		return nil
	}
	var segments []topology.Segment
	for i := range affinity.Required.NodeSelectorTerms {
		if segment, whole := segmentOfTerm(&affinity.Required.NodeSelectorTerms[i]); whole {
			segments = append(segments, segment)
		}
	}
	return segments
}

// segmentOfTerm returns the segment of a term, and false if the term is not a segment.
func segmentOfTerm(term *v1.NodeSelectorTerm) (topology.Segment, bool) {
	if len(term.MatchFields) > 0 {
		return "", false
	}
	labels := map[string]string{}
	for _, match := range term.MatchExpressions {
		if match.Operator != v1.NodeSelectorOpIn || len(match.Values) != 1 {
			return "", false
		}
		labels[match.Key] = match.Values[0]
	}
	return topology.SegmentOf(labels), true
}
