package gracestorage

import (
	"context"
	"net/http"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/ptr"
)

// holder has the grace period of a DELETE. The workers of a DELETECOLLECTION share it.
type holder struct {
	// seconds is nil without a grace period.
	seconds atomic.Pointer[int64]
}

type holderKey struct{}

// Handler gives each DELETE a holder. It runs behind the filters that parse the request.
func Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if info, ok := request.RequestInfoFrom(r.Context()); ok &&
			(info.Verb == "delete" || info.Verb == "deletecollection") {
			r = r.WithContext(withHolder(r.Context()))
		}
		next.ServeHTTP(w, r)
	})
}

func withHolder(ctx context.Context) context.Context {
	return context.WithValue(ctx, holderKey{}, &holder{})
}

// holderFrom returns the holder of a DELETE, or nil.
func holderFrom(ctx context.Context) *holder {
	found, _ := ctx.Value(holderKey{}).(*holder)
	return found
}

// grace returns the grace period of a DELETE, or nil.
func (h *holder) grace() *int64 {
	if h == nil {
		return nil
	}
	return h.seconds.Load()
}

// Admission copies the grace period of a DELETE that every other plugin admitted into the holder. Only admission sees
// the options as they were decoded, from the body or from the query.
type Admission struct{}

var _ admission.ValidationInterface = Admission{}

// Handles reports whether the plugin runs for the operation.
func (Admission) Handles(operation admission.Operation) bool { return operation == admission.Delete }

// Validate admits everything.
func (Admission) Validate(ctx context.Context, attributes admission.Attributes, _ admission.ObjectInterfaces) error {
	options, ok := attributes.GetOperationOptions().(*metav1.DeleteOptions)
	found := holderFrom(ctx)
	if !ok || found == nil || options.GracePeriodSeconds == nil {
		return nil
	}
	found.seconds.Store(ptr.To(*options.GracePeriodSeconds))
	return nil
}
