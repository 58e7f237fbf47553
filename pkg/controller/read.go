package controller

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/internal/absent"
)

// ReadLive reads one object from the API server. It returns the zero value if the
// object does not exist.
func ReadLive[T any](ctx context.Context, what, name string, get func(context.Context, string, metav1.GetOptions) (T, error)) (T, error) {
	object, err := get(ctx, name, metav1.GetOptions{})
	var none T
	switch {
	case absent.Is(err, name):
		return none, nil
	case err != nil:
		return none, fmt.Errorf("read %s %s: %w", what, name, err)
	}
	return object, nil
}
