package main

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// mayWatch says whether this program may list and watch the resource in the namespace,
// "" for all. A cache of what it may not is never filled, and everything would wait
// for it. Who may not even ask may not watch.
func (w *wiring) mayWatch(ctx context.Context, resource schema.GroupResource, namespace string) (bool, error) {
	reviews := w.clients.Objects.AuthorizationV1().SelfSubjectAccessReviews()
	for _, verb := range []string{"list", "watch"} {
		asked := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Group: resource.Group, Resource: resource.Resource, Namespace: namespace, Verb: verb},
		}}
		answer, err := reviews.Create(ctx, asked, metav1.CreateOptions{})
		if apierrors.IsForbidden(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("ask the API server for the right to %s %s: %w", verb, resource, err)
		}
		if !answer.Status.Allowed {
			return false, nil
		}
	}
	return true, nil
}
