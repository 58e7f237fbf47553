package capacity

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/ptr"
)

// Owner walks so many levels up from the pod, to what controls it, and to what
// controls that, and returns a reference to where it arrives. Where the objects
// begin and end with is known by the last one but one, so that the right to read
// the owner itself is not needed.
func Owner(ctx context.Context, client metadata.Interface, kinds meta.RESTMapper, pod metav1.ObjectMeta, levels int) (*metav1.OwnerReference, error) {
	at := metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name}
	for level := 0; ; level++ {
		object, err := read(ctx, client, kinds, pod.Namespace, at)
		if err != nil {
			return nil, err
		}
		if levels == 0 {
			at.UID, at.Controller = object.UID, ptr.To(true)
			return &at, nil
		}
		controller := metav1.GetControllerOfNoCopy(object)
		if controller == nil {
			return nil, fmt.Errorf("%s %s/%s is controlled by nothing, so there is no owner %d levels above the pod", at.Kind, pod.Namespace, at.Name, levels)
		}
		at = metav1.OwnerReference{APIVersion: controller.APIVersion, Kind: controller.Kind, Name: controller.Name, UID: controller.UID, Controller: ptr.To(true)}
		if level+1 == levels {
			return &at, nil
		}
	}
}

func read(ctx context.Context, client metadata.Interface, kinds meta.RESTMapper, namespace string, which metav1.OwnerReference) (*metav1.PartialObjectMetadata, error) {
	version, err := schema.ParseGroupVersion(which.APIVersion)
	if err != nil {
		return nil, fmt.Errorf("parse API version %q of %s %s: %w", which.APIVersion, which.Kind, which.Name, err)
	}
	mapping, err := kinds.RESTMapping(schema.GroupKind{Group: version.Group, Kind: which.Kind}, version.Version)
	if err != nil {
		return nil, fmt.Errorf("find the resource of kind %s: %w", which.Kind, err)
	}
	object, err := client.Resource(mapping.Resource).Namespace(namespace).Get(ctx, which.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read %s %s/%s: %w", which.Kind, namespace, which.Name, err)
	}
	return object, nil
}
