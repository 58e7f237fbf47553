package controller

import (
	"context"
	"fmt"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
)

// MayWatch reports whether this process may list and watch the resource in the
// namespace, "" for all namespaces. Without the right to ask, the answer is false. A cache of a
// resource that this process must not watch never syncs, and whoever waits for it never works.
func MayWatch(ctx context.Context, client kubernetes.Interface, resource schema.GroupResource,
	namespace string) (bool, error) {
	for _, verb := range []string{"list", "watch"} {
		if may, err := May(ctx, client, verb, resource, namespace); !may || err != nil {
			return false, err
		}
	}
	return true, nil
}

// May reports whether this process has the right. Without the right to ask, the answer is false.
func May(ctx context.Context, client kubernetes.Interface, verb string, resource schema.GroupResource,
	namespace string) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Group: resource.Group, Resource: resource.Resource,
			Namespace: namespace, Verb: verb},
	}}
	answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	switch {
	case apierrors.IsForbidden(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("ask the API server for the right to %s %s: %w", verb, resource, err)
	}
	return answer.Status.Allowed, nil
}

// Serves reports whether the API server serves the resource in the version.
func Serves(client discovery.DiscoveryInterface, resource schema.GroupVersionResource) (bool, error) {
	served, err := client.ServerResourcesForGroupVersion(resource.GroupVersion().String())
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("ask the API server whether %s is served: %w", resource.GroupResource(), err)
	}
	return slices.ContainsFunc(served.APIResources,
		func(r metav1.APIResource) bool { return r.Name == resource.Resource }), nil
}
