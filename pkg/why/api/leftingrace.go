package api

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// LeftInGrace returns the blocker of a custom resource that has a grace period in its fields and no finalizer, nil for any
// other object. A stock API server does not remove it when its last finalizer goes, one with graceful deletion only with
// the next write. A deletion removes it at both. An aggregated API server has rules of its own.
func LeftInGrace(ctx context.Context, e chain.Explorer, object *unstructured.Unstructured) []blocker.Blocker {
	seconds := object.GetDeletionGracePeriodSeconds()
	if seconds == nil || *seconds <= 0 || len(object.GetFinalizers()) > 0 {
		return nil
	}
	t, known := targetOf(e, object)
	if !known {
		return nil
	}
	_, presence := t.definition(ctx, e)
	if presence == cluster.Absent {
		return nil
	}
	found := blocker.Blocker{
		Object: cluster.ObjectOf(object), Reason: blocker.LeftInGrace, Verdict: blocker.Stuck, Holder: "the API server",
		Since: askedAt(object),
		Evidence: []blocker.Evidence{evidence(blocker.FromField,
			"metadata.deletionGracePeriodSeconds is %d, and metadata.finalizers is empty", *seconds)},
		Next: cluster.Comments("nothing keeps the object, and the API server does not remove it by itself. One more "+
			"deletion removes it at once",
			e.Commands().Kubectl(object.GetNamespace(), "delete", t.word(), object.GetName())),
	}
	if presence == cluster.Unseen { // it may be an object of an aggregated API
		found.Verdict = blocker.Unknown
	}
	return []blocker.Blocker{found}
}
