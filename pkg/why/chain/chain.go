// Package chain is the seam of "exeunt why": what the chains of single kinds (packages
// storage, nodes, api, signal) get from the explorer in package why, and what they return.
package chain

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/holder"
)

// Explorer is what a chain uses of the explorer.
type Explorer interface {
	// Reader reads the cluster.
	Reader() *cluster.Reader
	// Holders judges controllers.
	Holders() holder.Finder
	// Commands writes the next steps.
	Commands() cluster.Commands
	// Probe reports whether dry-run writes are allowed.
	Probe() bool
	// Explain returns what the deletion of a nested object waits for. An object that the tree
	// has already is not explained again.
	Explain(ctx context.Context, object *unstructured.Unstructured) []blocker.Blocker
	// Finalizer returns the blocker of a finalizer from the table of families, or
	// UnknownFinalizer.
	Finalizer(ctx context.Context, object *unstructured.Unstructured, finalizer string) blocker.Blocker
}

// Chain returns what the deletion of an object of its kind waits for. It is called for
// objects that are being deleted, and for volumes that are Released or Failed.
type Chain func(ctx context.Context, e Explorer, object *unstructured.Unstructured) []blocker.Blocker

// FinalizerChain returns what keeps one finalizer, on objects of any kind.
type FinalizerChain func(ctx context.Context, e Explorer, object *unstructured.Unstructured,
	finalizer string) blocker.Blocker

// FinalizerBlockers returns a blocker for each of the object's finalizers, from the table.
func FinalizerBlockers(ctx context.Context, e Explorer, object *unstructured.Unstructured) []blocker.Blocker {
	var found []blocker.Blocker
	for _, name := range object.GetFinalizers() {
		found = append(found, e.Finalizer(ctx, object, name))
	}
	return found
}
