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

// Owner follows controller references from the pod upwards for the number of levels and
// returns a reference to that object: with 0 levels the pod, with 2 usually the
// Deployment. The last object is not read, so that its read permission is not needed.
func Owner(ctx context.Context, client metadata.Interface, kinds meta.RESTMapper, pod metav1.ObjectMeta,
	levels int) (*metav1.OwnerReference, error) {
	current := metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name}
	for level := 0; ; level++ {
		object, err := read(ctx, client, kinds, pod.Namespace, current)
		if err != nil {
			return nil, err
		}
		if levels == 0 {
			current.UID, current.Controller = object.UID, ptr.To(true)
			return &current, nil
		}
		controller := metav1.GetControllerOfNoCopy(object)
		if controller == nil {
			return nil, fmt.Errorf("%s %s/%s has no controller, so there is no owner %d levels above the pod", current.Kind,
				pod.Namespace, current.Name, levels)
		}
		current = metav1.OwnerReference{APIVersion: controller.APIVersion, Kind: controller.Kind, Name: controller.Name,
			UID: controller.UID, Controller: ptr.To(true)}
		if level+1 == levels {
			return &current, nil
		}
	}
}

func read(ctx context.Context, client metadata.Interface, kinds meta.RESTMapper, namespace string,
	reference metav1.OwnerReference) (*metav1.PartialObjectMetadata, error) {
	version, err := schema.ParseGroupVersion(reference.APIVersion)
	if err != nil {
		return nil, fmt.Errorf("parse API version %q of %s %s: %w", reference.APIVersion, reference.Kind, reference.Name, err)
	}
	mapping, err := kinds.RESTMapping(schema.GroupKind{Group: version.Group, Kind: reference.Kind}, version.Version)
	if err != nil {
		return nil, fmt.Errorf("find the resource of kind %s: %w", reference.Kind, err)
	}
	object, err := client.Resource(mapping.Resource).Namespace(namespace).Get(ctx, reference.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read %s %s/%s: %w", reference.Kind, namespace, reference.Name, err)
	}
	return object, nil
}
