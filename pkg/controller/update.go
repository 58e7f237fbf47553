package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// Updates stand in for patches where those are forbidden: upstream's sidecar has the
// right to update claims and snapshots, not to patch them.
type UpdateFallback struct {
	client   rest.Interface
	resource schema.GroupResource
	// instead: this program may update the objects and may not patch them.
	instead atomic.Bool
}

// NewUpdateFallback returns updates of the resource by a client of its group and version.
func NewUpdateFallback(client rest.Interface, resource schema.GroupResource) *UpdateFallback {
	return &UpdateFallback{client: client, resource: resource}
}

// PatchOrUpdate has a patch sent or, if that is forbidden, does what comes to the same, and
// writes what the object is then into now. Where updates are forbidden too, the error
// is that of the patch.
func (u *UpdateFallback) PatchOrUpdate(ctx context.Context, object metav1.Object, body []byte, now any, send func() error) error {
	if u.instead.Load() {
		return u.update(ctx, object, body, now)
	}
	refusal := send()
	if !apierrors.IsForbidden(refusal) {
		return refusal
	}
	err := u.update(ctx, object, body, now)
	if apierrors.IsForbidden(err) {
		return refusal
	}
	u.instead.Store(true)
	return err
}

// update reads the object, applies the patch to it with all of its tests, and writes
// it back if nobody has written it meanwhile. Both are done with the JSON that the
// server sends, so that fields of tomorrow stay as they are.
func (u *UpdateFallback) update(ctx context.Context, object metav1.Object, body []byte, now any) error {
	name := func(request *rest.Request) *rest.Request {
		return request.Resource(u.resource.Resource).Namespace(object.GetNamespace()).Name(object.GetName()).SetHeader("Accept", runtime.ContentTypeJSON)
	}
	read, err := name(u.client.Get()).Do(ctx).Raw()
	if err != nil {
		return fmt.Errorf("read it for an update: %w", err)
	}
	changed, err := apply(body, read)
	switch {
	case errors.Is(err, jsonpatch.ErrTestFailed), errors.Is(err, jsonpatch.ErrMissing):
		return apierrors.NewConflict(u.resource, object.GetName(), err)
	case err != nil:
		return fmt.Errorf("apply the change to what was read: %w", err)
	}
	result := name(u.client.Put()).SetHeader("Content-Type", runtime.ContentTypeJSON).Body(changed).Do(ctx)
	if err := result.Error(); err != nil {
		return err
	}
	written, err := result.Raw()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(written, now); err != nil {
		return fmt.Errorf("decode what was written: %w", err)
	}
	return nil
}

// apply returns the document with the changes of the patch.
func apply(body, document []byte) ([]byte, error) {
	change, err := jsonpatch.DecodePatch(body)
	if err != nil {
		return nil, err
	}
	return change.Apply(document)
}

// patchOrUpdateClaim sends the patch, or an update in its place. The status is never updated.
func (w *Writer) patchOrUpdateClaim(ctx context.Context, claim *v1.PersistentVolumeClaim, body []byte, subresource []string) (*v1.PersistentVolumeClaim, error) {
	now := &v1.PersistentVolumeClaim{}
	send := func() error {
		patched, err := w.client.CoreV1().PersistentVolumeClaims(claim.Namespace).Patch(ctx, claim.Name, types.JSONPatchType, body, metav1.PatchOptions{}, subresource...)
		if err == nil {
			*now = *patched
		}
		return err
	}
	if len(subresource) > 0 {
		return now, send()
	}
	return now, w.claims.PatchOrUpdate(ctx, claim, body, now, send)
}
