// Package answer says what the answers of the API server prove: which prove that an object does not exist, and which
// prove that a write was not executed. Only a read that names the object proves its absence: the answer to a write is a
// webhook's, which may hand on a 404 about another object while the object itself lives.
package answer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Get reads the object of this name, and reports whether it exists. It takes the read itself, so that nobody takes the
// answer to a write for a proof. An answer that names no object, or another one, is an error.
func Get[T metav1.Object](ctx context.Context, name string, get func(context.Context, string,
	metav1.GetOptions) (T, error)) (T, bool, error) {
	object, err := get(ctx, name, metav1.GetOptions{})
	var none T
	switch {
	case IsAbsent(err, name):
		return none, false, nil
	case err != nil:
		return none, false, err
	case object.GetName() != name:
		return none, false, fmt.Errorf("the API server answers with an object of the name %q instead of %q", object.GetName(),
			name)
	}
	return object, true, nil
}

// IsAbsent reports whether the error is the API server's answer that the object of this name does not
// exist. A 404 that names no object proves nothing: it is of a proxy or load balancer in front of the
// API server, or of an API server that does not serve the path.
func IsAbsent(err error, name string) bool {
	details := detailsOf(err)
	return details != nil && details.Name == name
}

// IsAbsentOfKind is [IsAbsent] for an object of one of the kinds, as resource or as kind.
func IsAbsentOfKind(err error, name string, kinds ...string) bool {
	details := detailsOf(err)
	return details != nil && details.Name == name && slices.ContainsFunc(kinds,
		func(kind string) bool { return strings.EqualFold(kind, details.Kind) })
}

// detailsOf returns what a 404 of the API server says about the object, nil for other errors. The client
// itself adds the names of the request to an answer that is not in the form of the API server.
func detailsOf(err error) *metav1.StatusDetails {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) ||
		apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
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
