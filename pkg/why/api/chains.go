package api

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
)

// Chains returns the chains of the kinds of this package.
func Chains() map[schema.GroupKind]chain.Chain {
	return map[schema.GroupKind]chain.Chain{}
}

// Finalizers returns the chains of finalizers that objects of any kind may have.
func Finalizers() map[string]chain.FinalizerChain {
	return map[string]chain.FinalizerChain{}
}

// Refusals returns why the API server refuses the writes that end the object's deletion:
// admission, an invalid object, a conversion that fails.
func Refusals(ctx context.Context, e chain.Explorer, object *unstructured.Unstructured) []blocker.Blocker {
	return nil
}
