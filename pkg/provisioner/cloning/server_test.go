package cloning_test

import (
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
)

// staleUnless rejects, as the API server does, every patch that does not test that the given
// finalizer is the only one.
func staleUnless(only string) clienttesting.ReactionFunc {
	return func(action clienttesting.Action) (bool, runtime.Object, error) {
		body := string(action.(clienttesting.PatchAction).GetPatch())
		if strings.Contains(body, `{"op":"test","path":"/metadata/finalizers","value":["`+only+`"]}`) {
			return false, nil, nil
		}
		return true, nil, apierrors.NewInvalid(schema.GroupKind{}, "source", nil)
	}
}
