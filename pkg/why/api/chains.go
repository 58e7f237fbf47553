package api

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/exeunt-io/exeunt/pkg/why/chain"
)

// Chains returns the chains of the kinds of this package.
func Chains() map[schema.GroupKind]chain.Chain {
	return map[schema.GroupKind]chain.Chain{
		{Kind: "Namespace"}: explainNamespace,
	}
}

// Finalizers returns the chains of finalizers that objects of any kind may have.
func Finalizers() map[string]chain.FinalizerChain {
	chains := map[string]chain.FinalizerChain{
		metav1.FinalizerDeleteDependents: explainForeground,
		metav1.FinalizerOrphanDependents: explainOrphan,
		instanceCleanup:                  explainInstances,
	}
	for _, name := range applicationFinalizers {
		chains[name] = explainApplication
	}
	return chains
}
