package server

import (
	"errors"
	"net/http"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// patch applies a patch to the JSON of the object.
func (c Cluster) patch(r route, request Request) (Cluster, Response) {
	object, _ := c.Get(r.key())
	if object.JSON == "" {
		return c, *notFound(r)
	}
	patched, refusal := r.apply(request, object.Wire())
	if refusal != nil {
		return c, *refusal
	}
	d, err := r.decodeObject(string(patched))
	if err != nil {
		return c, *invalidPatch(err)
	}
	if refusal := r.checkIdentity(d); refusal != nil {
		return c, *refusal
	}
	return c.replace(r, object, d)
}

func (r route) apply(request Request, current string) ([]byte, *Response) {
	change := []byte(request.Body)
	switch types.PatchType(request.ContentType) {
	case types.JSONPatchType:
		operations, err := jsonpatch.DecodePatch(change)
		if err != nil {
			return nil, undecodable(err)
		}
		patched, err := operations.Apply([]byte(current))
		if err != nil {
			return nil, refusedPatch(err)
		}
		return patched, nil
	case types.MergePatchType:
		return merged(jsonpatch.MergePatch([]byte(current), change))
	case types.StrategicMergePatchType:
		return merged(strategicpatch.StrategicMergePatch([]byte(current), change, r.resource.object))
	default:
		return nil, failure(apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, "",
			r.resource.groupResource(), r.name, "the body of the request was in an unknown format", 0, false))
	}
}

func merged(patched []byte, err error) ([]byte, *Response) {
	switch {
	case errors.Is(err, jsonpatch.ErrBadJSONPatch):
		return nil, undecodable(err)
	case err != nil:
		return nil, internal(err.Error())
	}
	return patched, nil
}
