package controller

import (
	"context"
	"errors"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// patchClaim sends the patch, or what comes to the same where it is forbidden:
// upstream's sidecar has the right to update claims, not to patch them.
func (w *Writer) patchClaim(ctx context.Context, claim *v1.PersistentVolumeClaim, body []byte, subresource []string) (*v1.PersistentVolumeClaim, error) {
	if w.updates.Load() && len(subresource) == 0 {
		return w.updateClaim(ctx, claim, body)
	}
	now, refusal := w.client.CoreV1().PersistentVolumeClaims(claim.Namespace).Patch(ctx, claim.Name, types.JSONPatchType, body, metav1.PatchOptions{}, subresource...)
	if !apierrors.IsForbidden(refusal) || len(subresource) > 0 {
		return now, refusal
	}
	now, err := w.updateClaim(ctx, claim, body)
	if apierrors.IsForbidden(err) {
		return nil, refusal
	}
	w.updates.Store(true)
	return now, err
}

// updateClaim reads the claim, applies the patch to it with all of its tests, and
// writes it back if nobody has written it meanwhile. Both are done with the JSON
// that the server sends, so that fields of tomorrow stay as they are.
func (w *Writer) updateClaim(ctx context.Context, claim *v1.PersistentVolumeClaim, body []byte) (*v1.PersistentVolumeClaim, error) {
	name := func(request *rest.Request) *rest.Request {
		return request.Resource("persistentvolumeclaims").Namespace(claim.Namespace).Name(claim.Name).SetHeader("Accept", runtime.ContentTypeJSON)
	}
	client := w.client.CoreV1().RESTClient()
	read, err := name(client.Get()).Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("read it for an update: %w", err)
	}
	changed, err := apply(body, read)
	switch {
	case errors.Is(err, jsonpatch.ErrTestFailed), errors.Is(err, jsonpatch.ErrMissing):
		return nil, apierrors.NewConflict(v1.Resource("persistentvolumeclaims"), claim.Name, err)
	case err != nil:
		return nil, fmt.Errorf("apply the change to what was read: %w", err)
	}
	now := &v1.PersistentVolumeClaim{}
	err = name(client.Put()).SetHeader("Content-Type", runtime.ContentTypeJSON).Body(changed).Do(ctx).Into(now)
	return now, err
}

// apply returns the document with the changes of the patch.
func apply(body, document []byte) ([]byte, error) {
	change, err := jsonpatch.DecodePatch(body)
	if err != nil {
		return nil, err
	}
	return change.Apply(document)
}
