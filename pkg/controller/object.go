package controller

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/controller/partial"
)

// Key returns the namespace/name of an object.
func Key(object metav1.Object) string {
	return cache.MetaObjectToName(object).String()
}

// ClaimKey returns the namespace/name of the volume's claimRef, "" without one.
func ClaimKey(volume *v1.PersistentVolume) string {
	if volume.Spec.ClaimRef == nil {
		return ""
	}
	return volume.Spec.ClaimRef.Namespace + "/" + volume.Spec.ClaimRef.Name
}

// StripManagedFields is an informer transform that removes metadata.managedFields.
func StripManagedFields(object any) (any, error) {
	if accessor, ok := object.(metav1.Object); ok {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}

// TrimNode is an informer transform that keeps the name and the labels of a node.
func TrimNode(object any) (any, error) {
	node, ok := object.(*v1.Node)
	if !ok {
		return object, nil
	}
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion, Labels: node.Labels}}, nil
}

// NodeRule decodes what [TrimNode] keeps.
func NodeRule() partial.Rule {
	return partial.Rule{Fields: partial.Only(v1.Node{}, "metadata.name", "metadata.uid", "metadata.resourceVersion", "metadata.labels")}
}
