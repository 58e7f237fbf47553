package answer

import (
	"errors"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/exeunt-io/exeunt/pkg/patch"
)

// NeedsRead reports whether the object must be read after the error of a write. The code says that the object is gone
// or has changed, but an admission webhook chooses the code of its denial.
func NeedsRead(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsGone(err) || patch.IsStale(err)
}

// IsDefinite reports whether the error of a write proves that the write was not executed.
func IsDefinite(err error) bool {
	return IsRefused(err) || slices.Contains([]int32{http.StatusConflict, http.StatusTooManyRequests}, statusOf(err))
}

// IsRefused reports whether the API server has refused a write, and refuses the same write
// again. After all other errors but conflicts and TooManyRequests the outcome is unknown.
func IsRefused(err error) bool {
	var refusal *Refusal
	if errors.As(err, &refusal) {
		return true
	}
	switch statusOf(err) {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound,
		http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusGone,
		http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// statusOf returns the HTTP status of an answer, 0 without an answer.
func statusOf(err error) int32 {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Code
	}
	return 0
}
