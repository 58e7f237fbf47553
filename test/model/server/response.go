package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// problems are what is wrong with an object.
type problems = field.ErrorList

func success(body string) Response {
	return Response{Code: http.StatusOK, Body: body}
}

// failure returns the response for an error of the API.
func failure(err *apierrors.StatusError) *Response {
	body := err.Status()
	body.Kind, body.APIVersion = "Status", "v1"
	encoded, _ := json.Marshal(body) // a Status can always be encoded
	return &Response{Code: int(body.Code), Body: string(encoded)}
}

func notFound(r route) *Response {
	return failure(apierrors.NewNotFound(r.resource.groupResource(), r.name))
}

func conflict(r route, format string, args ...any) *Response {
	return failure(apierrors.NewConflict(r.resource.groupResource(), r.name, fmt.Errorf(format, args...)))
}

func badRequest(format string, args ...any) *Response {
	return failure(apierrors.NewBadRequest(fmt.Sprintf(format, args...)))
}

func invalid(r route, causes problems) *Response {
	return failure(apierrors.NewInvalid(r.resource.groupKind(), r.name, causes))
}

// invalidPatch is the answer to a patch whose result is no object.
func invalidPatch(err error) *Response {
	return failure(apierrors.NewInvalid(schema.GroupKind{}, "",
		problems{field.Invalid(field.NewPath("patch"), "", err.Error())}))
}

// refusedPatch is the answer to a JSON patch that cannot be applied, such as one with a
// failed test.
func refusedPatch(err error) *Response {
	return failure(apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "",
		err.Error(), 0, false))
}

func forbidden(r route, format string, args ...any) *Response {
	return failure(apierrors.NewForbidden(r.resource.groupResource(), r.name, fmt.Errorf(format, args...)))
}

func methodNotAllowed() *Response {
	return failure(apierrors.NewGenericServerResponse(http.StatusMethodNotAllowed, "", schema.GroupResource{}, "", "", 0,
		false))
}

// preconditionFailed is a conflict. It has the kind in the place of the resource, except
// for namespaces.
func preconditionFailed(r route, format string, args ...any) *Response {
	named := schema.GroupResource{Group: r.resource.group, Resource: r.resource.kind}
	if r.resource.name == namespaces {
		named.Resource = namespaces
	}
	return failure(apierrors.NewConflict(named, r.name, fmt.Errorf(format, args...)))
}

// versionRequired has the resource in the place of the kind.
func versionRequired(r route) *Response {
	named := schema.GroupKind{Group: r.resource.group, Kind: r.resource.name}
	return failure(apierrors.NewInvalid(named, r.name,
		problems{field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update")}))
}

func internal(message string) *Response {
	err := apierrors.NewInternalError(errors.New(message))
	err.ErrStatus.Reason, err.ErrStatus.Details = metav1.StatusReasonUnknown, nil
	return failure(err)
}

func undecodable(err error) *Response {
	return badRequest("%v", err)
}

func immutable(now, old any, path ...string) problems {
	if equal(now, old) {
		return nil
	}
	return problems{field.Invalid(field.NewPath(path[0], path[1:]...), now, "field is immutable")}
}

func required(value any, path ...string) problems {
	if value != nil && !isEmpty(value) {
		return nil
	}
	return problems{field.Required(field.NewPath(path[0], path[1:]...), "")}
}
