package api

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/families"
)

// controller is the blocker of an object that waits for the controller of a finalizer.
type controller struct{ blocker.Blocker }

// judge finds the controller that removes the finalizer, and says whether it acts.
func judge(ctx context.Context, e chain.Explorer, object *unstructured.Unstructured, finalizer string) controller {
	gvk := object.GroupVersionKind()
	family, known := families.Find(finalizer, gvk.Kind, gvk.Group)
	if !known {
		return controller{e.Holders().Attribute(ctx, object, finalizer)}
	}
	found := e.Holders().Judge(ctx, object, finalizer, family, "")
	if found.Next == "" {
		found.Next = cluster.Steps("look at "+found.Holder, e.Commands().
			Show(object.GetNamespace(), resourceWord(e, object), object.GetName()))
	}
	if found.Since == "" {
		found.Since = askedAt(object)
	}
	return controller{found}
}

// verdictOfWork returns the verdict of work that the controller has not done yet. A
// controller that is gone or fails has a blocker of its own.
func (c controller) verdictOfWork() blocker.Verdict {
	if c.Verdict == blocker.Waiting {
		return blocker.Waiting
	}
	return blocker.Unknown
}
