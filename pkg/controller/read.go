package controller

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/internal/answer"
)

// ReadLive reads one object from the API server. It returns the zero value if the
// object does not exist.
func ReadLive[T metav1.Object](ctx context.Context, what, name string,
	get func(context.Context, string, metav1.GetOptions) (T, error)) (T, error) {
	object, _, err := answer.Get(ctx, name, get)
	if err != nil {
		return object, fmt.Errorf("read %s %s: %w", what, name, err)
	}
	return object, nil
}

// CheckName returns an error if the answer to a request for the object of this name is another object, or
// an empty one: a server of another kind behind the address of the API server says 200 to everything.
func CheckName(answer metav1.Object, name string) error {
	if answer.GetName() != name {
		return fmt.Errorf("the API server answers with an object of the name %q instead of %q", answer.GetName(), name)
	}
	return nil
}
