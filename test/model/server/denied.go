package server

import (
	"encoding/json"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Denials returns the answers with which an admission webhook may deny the request: the webhook chooses code, reason and
// details, and the API server hands them on. None for a request that changes nothing or names no object.
func Denials(request Request) []Response {
	key, named := KeyOf(request)
	if !named || request.Method == http.MethodGet {
		return nil
	}
	resource := resources[key.Resource].groupResource()
	denials := []*apierrors.StatusError{
		apierrors.NewNotFound(resource, key.Name), apierrors.NewConflict(resource, key.Name, errDenied),
		apierrors.NewForbidden(resource, key.Name, errDenied),
		apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, request.Method, resource, key.Name,
			errDenied.Error(), 0, false),
		apierrors.NewGenericServerResponse(http.StatusGone, request.Method, resource, key.Name, errDenied.Error(), 0, false),
	}
	if request.Method == http.MethodPost {
		denials = append(denials, apierrors.NewAlreadyExists(resource, key.Name))
	}
	all := make([]Response, 0, len(denials))
	for _, denial := range denials {
		denial.ErrStatus.Message = `admission webhook "webhook.example.com" denied the request: ` + denial.ErrStatus.Message
		all = append(all, *failure(denial))
	}
	return all
}

var errDenied = errors.New("the webhook says so")

// ReasonOf returns the reason of a failure, "" for none.
func ReasonOf(response Response) metav1.StatusReason {
	var status metav1.Status
	if json.Unmarshal([]byte(response.Body), &status) != nil {
		return ""
	}
	return status.Reason
}
