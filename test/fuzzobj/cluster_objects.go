package fuzzobj

import (
	"math"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TopologyKeys are the keys of the driver's topology.
var TopologyKeys = []string{"zone." + Driver, "rack." + Driver}

// Text returns the next bytes as a text of at most most bytes.
func (d *Choices) Text(most int) string {
	length := min(d.Below(most+1), len(d.bytes))
	text := string(d.bytes[:length])
	d.bytes = d.bytes[length:]
	return text
}

// Segments returns values of topology keys.
func (d *Choices) Segments() map[string]string {
	segments := map[string]string{}
	for _, key := range some(d, append(TopologyKeys, v1.LabelHostname, "no label!")...) {
		segments[key] = Pick(d, "a", "b", "", "node", "not a label value")
	}
	return segments
}

// Node returns a node with the name.
func (d *Choices) Node(name string) *v1.Node {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID(name), ResourceVersion: "1", DeletionTimestamp: d.deletion(), Labels: d.Segments(),
	}}
	node.Spec.Taints = some(d, v1.Taint{Key: v1.TaintNodeOutOfService, Effect: v1.TaintEffectNoExecute}, v1.Taint{})
	for _, kind := range some(d, v1.NodeReady, v1.NodeDiskPressure) {
		node.Status.Conditions = append(node.Status.Conditions, v1.NodeCondition{
			Type: kind, Status: Pick(d, v1.ConditionTrue, v1.ConditionFalse, v1.ConditionUnknown, ""),
			LastTransitionTime: metav1.Time{Time: d.Time()},
		})
	}
	return node
}

// CSINode returns the CSINode of a node.
func (d *Choices) CSINode(name string) *storagev1.CSINode {
	object := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "1"}}
	object.Spec.Drivers = some(d,
		storagev1.CSINodeDriver{Name: Driver, NodeID: name, TopologyKeys: some(d, append(TopologyKeys, "no label!", "")...)},
		storagev1.CSINodeDriver{Name: "other.example.com"},
		storagev1.CSINodeDriver{})
	return object
}

// Lease returns a Lease with the name.
func (d *Choices) Lease(name string) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, UID: types.UID(name),
		ResourceVersion: "1"}}
	lease.Spec.HolderIdentity = pointer(Pick(d, "-", "", "pod_uid", "csi-provisioner-0", "exeunt"))
	lease.Spec.LeaseDurationSeconds = Pick(d, nil, number(15), number(0), number(-1), number(math.MaxInt32))
	if d.Below(3) > 0 {
		lease.Spec.RenewTime = &metav1.MicroTime{Time: d.Time()}
	}
	lease.Spec.LeaseTransitions = Pick(d, nil, number(0), number(1), number(math.MaxInt32))
	return lease
}

func number(n int32) *int32 { return &n }

// Time returns a time: none, the epoch, within an hour after 2030 began, or far away.
func (d *Choices) Time() time.Time {
	year := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	return Pick(d, year, time.Time{}, time.Unix(0, 0), year.Add(time.Duration(d.Below(60))*time.Minute),
		year.AddDate(270, 0, 0))
}

// Attachment returns a VolumeAttachment with the name.
func (d *Choices) Attachment(name string) *storagev1.VolumeAttachment {
	attachment := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name),
		DeletionTimestamp: d.deletion(), Finalizers: some(d, finalizers...)}}
	attachment.Spec = storagev1.VolumeAttachmentSpec{
		Attacher: Pick(d, Driver, "", "other.example.com"), NodeName: Pick(d, "node", ""),
		Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: pointer(Pick(d, "v0", "v1", "-", "", "gone"))},
	}
	attachment.Status.Attached = d.Below(2) == 1
	attachment.Status.DetachError = Pick(d, nil, &storagev1.VolumeError{Message: "busy"})
	return attachment
}

// Capacity returns a CSIStorageCapacity with the name.
func (d *Choices) Capacity(name string) *storagev1.CSIStorageCapacity {
	object := &storagev1.CSIStorageCapacity{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, UID: types.UID(name), ResourceVersion: "1",
			Labels: d.labels(), CreationTimestamp: metav1.Time{Time: d.Time()}},
		StorageClassName: Pick(d, "c0", "c1", "", "a/b"), NodeTopology: d.selector(),
	}
	if d.Below(2) == 1 {
		object.NodeTopology = &metav1.LabelSelector{MatchLabels: d.Segments()}
	}
	if size, found := d.storage()[v1.ResourceStorage]; found {
		object.Capacity = &size
	}
	if size, found := d.storage()[v1.ResourceStorage]; found {
		object.MaximumVolumeSize = &size
	}
	return object
}
