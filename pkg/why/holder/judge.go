package holder

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/blocker/families"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// Judge returns the blocker of a finalizer that the controller removes from the object.
func (f Finder) Judge(ctx context.Context, object *unstructured.Unstructured, finalizer string, family families.Family, driver string) blocker.Blocker {
	finding := f.Look(ctx, family.Controller, driver)
	reason, verdict := blocker.JudgeController(finding.State)
	return blocker.Blocker{
		Object: cluster.ObjectOf(object), Finalizer: finalizer, Reason: reason, Verdict: verdict,
		Holder: finding.Holder, Since: finding.Since, Evidence: finding.Evidence, Next: finding.Next,
	}
}

// Attribute returns the blocker of a finalizer that is not in the table.
func (f Finder) Attribute(_ context.Context, object *unstructured.Unstructured, finalizer string) blocker.Blocker {
	return blocker.Blocker{
		Object: cluster.ObjectOf(object), Finalizer: finalizer, Reason: blocker.UnknownFinalizer, Verdict: blocker.Unknown,
	}
}
