// Package absent says which answers prove that an object does not exist.
package absent

import (
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Is reports whether the error is the API server's answer that the object of this name does not
// exist. A 404 that names no object proves nothing: it is of a proxy or load balancer in front of the
// API server, or of an API server that does not serve the path.
func Is(err error, name string) bool {
	details := detailsOf(err)
	return details != nil && details.Name == name
}

// IsOfKind is [Is] for an object of one of the kinds, as resource or as kind.
func IsOfKind(err error, name string, kinds ...string) bool {
	details := detailsOf(err)
	return details != nil && details.Name == name && slices.ContainsFunc(kinds, func(kind string) bool { return strings.EqualFold(kind, details.Kind) })
}

// detailsOf returns what a 404 of the API server says about the object, nil for other errors. The client
// itself adds the names of the request to an answer that is not in the form of the API server.
func detailsOf(err error) *metav1.StatusDetails {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) || apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		return nil
	}
	return status.Status().Details
}

// CheckedList returns the answer to a list request. An answer without a version is an error, since the API
// server gives each list one: the empty page of another server behind its address would say that no object
// exists.
func CheckedList[L metav1.ListInterface](list L, err error) (L, error) {
	if err == nil && list.GetResourceVersion() == "" {
		err = errors.New("the answer has no version, and is not that of the API server")
	}
	return list, err
}
