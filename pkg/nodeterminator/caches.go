package nodeterminator

import (
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/controller/partial"
	"github.com/exeunt-io/exeunt/pkg/termination"
)

const (
	byNode       = "node"
	byProviderID = "providerID"
	// byTerminating has the nodes with our finalizer that are being deleted, under the one value hasIt.
	byTerminating = "terminating"
	hasIt         = "true"
)

// Rules say what is decoded of nodes and volumes.
func Rules() partial.Rules {
	return partial.Rules{
		"Node": {Fields: partial.Only(v1.Node{}, "metadata.name", "metadata.uid", "metadata.resourceVersion",
			"metadata.creationTimestamp", "metadata.deletionTimestamp", "metadata.deletionGracePeriodSeconds",
			"metadata.labels", "metadata.annotations", "metadata.finalizers", "spec.taints", "spec.providerID",
			"status.conditions", "status.addresses")},
		"PersistentVolume": {Fields: partial.Only(v1.PersistentVolume{}, "metadata.name", "metadata.uid",
			"metadata.resourceVersion", "spec.claimRef")},
	}
}

// Caches are the informers of the controller.
type Caches struct {
	Nodes, Attachments, Volumes cache.SharedIndexInformer
}

// NewCaches returns the informers of the factory.
func NewCaches(factory informers.SharedInformerFactory) (*Caches, error) {
	c := &Caches{
		Nodes:       factory.Core().V1().Nodes().Informer(),
		Attachments: factory.Storage().V1().VolumeAttachments().Informer(),
		Volumes:     factory.Core().V1().PersistentVolumes().Informer(),
	}
	err := errors.Join(
		c.Nodes.SetTransform(trimNode), c.Attachments.SetTransform(trimAttachment), c.Volumes.SetTransform(trimVolume),
		c.Nodes.AddIndexers(cache.Indexers{byProviderID: indexProviderID, byTerminating: indexTerminating}),
		c.Attachments.AddIndexers(cache.Indexers{byNode: indexNode}))
	if err != nil {
		return nil, fmt.Errorf("set up caches: %w", err)
	}
	return c, nil
}

// trimNode keeps name, UID, version and providerID of a node that is not served, and of others what decisions need.
func trimNode(object any) (any, error) {
	n, ok := object.(*v1.Node)
	if !ok {
		return object, nil
	}
	trimmed := &v1.Node{Spec: v1.NodeSpec{ProviderID: n.Spec.ProviderID}}
	trimmed.Name, trimmed.UID, trimmed.ResourceVersion = n.Name, n.UID, n.ResourceVersion
	if !isConcerned(n) {
		return trimmed, nil
	}
	trimmed.CreationTimestamp, trimmed.DeletionTimestamp = n.CreationTimestamp, n.DeletionTimestamp
	trimmed.DeletionGracePeriodSeconds = n.DeletionGracePeriodSeconds
	trimmed.Labels, trimmed.Annotations, trimmed.Finalizers = n.Labels, n.Annotations, n.Finalizers
	trimmed.Spec.Taints, trimmed.Status.Addresses = n.Spec.Taints, n.Status.Addresses
	for _, condition := range n.Status.Conditions {
		if condition.Type == v1.NodeReady {
			trimmed.Status.Conditions = []v1.NodeCondition{{Type: condition.Type, Status: condition.Status,
				LastTransitionTime: condition.LastTransitionTime}}
		}
	}
	return trimmed, nil
}

// isConcerned reports whether the node may be served.
func isConcerned(n *v1.Node) bool {
	_, labeled := n.Labels[termination.Label]
	return labeled || termination.Protected(n) || n.DeletionTimestamp != nil
}

func trimAttachment(object any) (any, error) {
	a, ok := object.(*storagev1.VolumeAttachment)
	if !ok {
		return object, nil
	}
	trimmed := &storagev1.VolumeAttachment{Status: storagev1.VolumeAttachmentStatus{Attached: a.Status.Attached}}
	trimmed.Name, trimmed.UID, trimmed.ResourceVersion = a.Name, a.UID, a.ResourceVersion
	trimmed.DeletionTimestamp = a.DeletionTimestamp
	trimmed.Spec.NodeName, trimmed.Spec.Source.PersistentVolumeName = a.Spec.NodeName, a.Spec.Source.PersistentVolumeName
	if a.Status.DetachError != nil {
		trimmed.Status.DetachError = &storagev1.VolumeError{Message: a.Status.DetachError.Message}
	}
	return trimmed, nil
}

func trimVolume(object any) (any, error) {
	volume, ok := object.(*v1.PersistentVolume)
	if !ok {
		return object, nil
	}
	trimmed := &v1.PersistentVolume{}
	trimmed.Name, trimmed.UID, trimmed.ResourceVersion = volume.Name, volume.UID, volume.ResourceVersion
	if ref := volume.Spec.ClaimRef; ref != nil {
		trimmed.Spec.ClaimRef = &v1.ObjectReference{Namespace: ref.Namespace, Name: ref.Name}
	}
	return trimmed, nil
}

func indexProviderID(object any) ([]string, error) {
	if n, ok := object.(*v1.Node); ok && n.Spec.ProviderID != "" {
		return []string{n.Spec.ProviderID}, nil
	}
	return nil, nil
}

func indexTerminating(object any) ([]string, error) {
	if n, ok := object.(*v1.Node); ok && isTerminating(n) {
		return []string{hasIt}, nil
	}
	return nil, nil
}

// isTerminating reports whether the node is being deleted and has our finalizer.
func isTerminating(n *v1.Node) bool {
	return n != nil && n.DeletionTimestamp != nil && termination.Protected(n)
}

func indexNode(object any) ([]string, error) {
	if a, ok := object.(*storagev1.VolumeAttachment); ok {
		return []string{a.Spec.NodeName}, nil
	}
	return nil, nil
}

// node returns the cached node, nil if there is none.
func (c *Caches) node(name string) *v1.Node { return controller.Lookup[*v1.Node](c.Nodes, name) }

// attachmentsOf returns the attachments of the node.
func (c *Caches) attachmentsOf(node string) []*storagev1.VolumeAttachment {
	return byIndex[*storagev1.VolumeAttachment](c.Attachments, byNode, node)
}

// isShared reports whether another node has the providerID of the node.
func (c *Caches) isShared(n *v1.Node) bool {
	for _, other := range byIndex[*v1.Node](c.Nodes, byProviderID, n.Spec.ProviderID) {
		if n.Spec.ProviderID != "" && other.Name != n.Name {
			return true
		}
	}
	return false
}

// claimOf returns the namespace/name of the claim of the volume, "" if the volume is not known.
func (c *Caches) claimOf(volume string) string {
	if cached := controller.Lookup[*v1.PersistentVolume](c.Volumes, volume); cached != nil {
		return controller.ClaimKey(cached)
	}
	return ""
}

func byIndex[T any](informer cache.SharedIndexInformer, index, value string) []T {
	objects, err := informer.GetIndexer().ByIndex(index, value)
	if err != nil { // the index was added above
		panic(err)
	}
	typed := make([]T, 0, len(objects))
	for _, object := range objects {
		if one, ok := object.(T); ok {
			typed = append(typed, one)
		}
	}
	return typed
}

// TrimNamespace is an informer transform that keeps whether a namespace is being deleted.
func TrimNamespace(object any) (any, error) {
	namespace, ok := object.(*v1.Namespace)
	if !ok {
		return object, nil
	}
	trimmed := &v1.Namespace{}
	trimmed.Name, trimmed.UID, trimmed.ResourceVersion = namespace.Name, namespace.UID, namespace.ResourceVersion
	trimmed.DeletionTimestamp = namespace.DeletionTimestamp
	return trimmed, nil
}
