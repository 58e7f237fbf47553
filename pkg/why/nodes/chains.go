package nodes

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
)

// Chains returns the chains of the kinds of this package. A Node waits for its finalizers
// only, so it needs no chain of its own.
func Chains() map[schema.GroupKind]chain.Chain {
	return map[schema.GroupKind]chain.Chain{{Kind: "Pod"}: explainPod}
}

// Finalizers returns the chains of finalizers that objects of any kind may have.
func Finalizers() map[string]chain.FinalizerChain {
	return map[string]chain.FinalizerChain{
		termination.Finalizer: explainTermination, karpenterFinalizer: explainTermination,
	}
}
