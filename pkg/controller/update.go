package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
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

// UpdateFallback sends an update where a patch is forbidden: the RBAC rules of upstream's
// sidecar allow updates of claims and snapshots, not patches.
type UpdateFallback struct {
	client   rest.Interface
	resource schema.GroupResource
	// updatesLeft is how many updates are sent before a patch is tried again; below 1 after
	// a patch that was not forbidden.
	updatesLeft atomic.Int64
}

// updatesPerPatch: after a patch was forbidden, and an update succeeded, so many changes are
// sent as updates, or until one is forbidden. A policy of one namespace or a role that comes late forbids for a while.
const updatesPerPatch = 100

// NewUpdateFallback returns the fallback for a resource. The client is that of its group
// and version.
func NewUpdateFallback(client rest.Interface, resource schema.GroupResource) *UpdateFallback {
	return &UpdateFallback{client: client, resource: resource}
}

// PatchOrUpdate calls send or, if patches are forbidden, makes the same change by an update
// and decodes the result into now. If updates are forbidden too, it returns the error of
// the patch.
func (u *UpdateFallback) PatchOrUpdate(ctx context.Context, object metav1.Object, body []byte, now any,
	send func() error) error {
	if u.updatesLeft.Add(-1) >= 0 {
		err := u.update(ctx, object, body, now)
		if !isMissingRight(err) {
			return err
		}
		u.updatesLeft.Store(0)
	}
	patchErr := send()
	if !isMissingRight(patchErr) {
		return patchErr
	}
	err := u.update(ctx, object, body, now)
	if isMissingRight(err) {
		return patchErr
	}
	// Only an update that succeeds shows that updates are allowed.
	if err == nil {
		u.updatesLeft.Store(updatesPerPatch)
	}
	return err
}

// isMissingRight reports whether the request was forbidden, and not by a webhook: that denies a patch and an update alike.
func isMissingRight(err error) bool {
	return apierrors.IsForbidden(err) && !strings.Contains(err.Error(), "denied the request")
}

// update reads the object, applies the patch with all of its tests, and writes the result
// with the read version. It works on the server's JSON, so that fields that this client
// does not know stay as they are.
func (u *UpdateFallback) update(ctx context.Context, object metav1.Object, body []byte, now any) error {
	forObject := func(request *rest.Request) *rest.Request {
		return request.Resource(u.resource.Resource).Namespace(object.GetNamespace()).Name(object.GetName()).
			SetHeader("Accept", runtime.ContentTypeJSON)
	}
	read, err := rawOf(forObject(u.client.Get()).Do(ctx))
	if err != nil {
		return fmt.Errorf("read object to update: %w", err)
	}
	changed, err := apply(body, read)
	switch {
	case errors.Is(err, jsonpatch.ErrTestFailed), errors.Is(err, jsonpatch.ErrMissing):
		return apierrors.NewConflict(u.resource, object.GetName(), err)
	case err != nil:
		return fmt.Errorf("apply patch to object: %w", err)
	}
	written, err := rawOf(forObject(u.client.Put()).SetHeader("Content-Type", runtime.ContentTypeJSON).Body(changed).
		Do(ctx))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(written, now); err != nil {
		return fmt.Errorf("decode updated object: %w", err)
	}
	return nil
}

// rawOf returns the body. Raw alone would lose what the API server says in the body of an error.
func rawOf(result rest.Result) ([]byte, error) {
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}

// apply returns the patched document.
func apply(body, document []byte) ([]byte, error) {
	change, err := jsonpatch.DecodePatch(body)
	if err != nil {
		return nil, err
	}
	return change.Apply(document)
}

// patchOrUpdateClaim falls back to an update, except for the status.
func (w *Writer) patchOrUpdateClaim(ctx context.Context, claim *v1.PersistentVolumeClaim, body []byte,
	subresource []string) (*v1.PersistentVolumeClaim, error) {
	now := &v1.PersistentVolumeClaim{}
	send := func() error {
		patched, err := w.client.CoreV1().PersistentVolumeClaims(claim.Namespace).
			Patch(ctx, claim.Name, types.JSONPatchType, body, metav1.PatchOptions{}, subresource...)
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
