package why

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/api"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// inGrace adds the deadline of a custom resource to the blocker of one of its finalizers. Until the grace period ends,
// an unknown controller is expected to wait. What proves that a controller does not act, proves it before the deadline,
// too; and a deadline that has passed proves nothing.
func (t *tree) inGrace(object *unstructured.Unstructured, b blocker.Blocker) blocker.Blocker {
	custom := api.IsDefinedGroup(object.GroupVersionKind().Group)
	deadline := blocker.DeadlineOf(object, custom)
	if deadline == nil || !custom {
		return b
	}
	if object.GetUID() != t.root { // whose report has the deadline
		b.Evidence = slices.Concat([]blocker.Evidence{deadline.Evidence()}, b.Evidence)
	}
	if deadline.Passed(t.reader.Now()) {
		return b
	}
	acts := b.Reason == blocker.ControllerActs && b.Verdict == blocker.Waiting
	switch {
	case b.Reason == blocker.UnknownFinalizer:
		b.Reason, b.Verdict = blocker.GracePeriod, blocker.Waiting
	case !acts:
		return b
	}
	b.Next = cluster.Steps("wait until "+deadline.Time+", the deadline of "+cluster.ObjectOf(object).String()+
		". What follows is for an object that stays longer") + "\n" + b.Next
	return b
}
