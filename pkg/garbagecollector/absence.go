package garbagecollector

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

// errPathNotFound is a 404 that does not name the object: the path is not served, as by an
// API server that does not know a CustomResourceDefinition yet. It proves nothing.
var errPathNotFound = errors.New("the API server answers 404 without naming the object")

// namesAbsent reports whether the error says that the object of that name does not exist.
func namesAbsent(err error, kind *graph.Kind, name string) bool {
	return answer.IsAbsentOfKind(err, name, kind.Resource, kind.Kind)
}

// isPathNotFound reports whether the error is a 404 that names no object.
func isPathNotFound(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Name == ""
}
