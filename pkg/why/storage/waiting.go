package storage

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/holder"
)

// user is an object that another one waits for, and what a person may do about it.
type user struct {
	object *unstructured.Unstructured
	// resource is how kubectl names its kind.
	resource string
	// wait says what ends the use, loss what its deletion costs.
	wait, loss string
}

// waitsFor completes the blocker of an object that waits for a user. One that is being deleted is
// explained itself: no step deletes it once more, or waits for work that is not done any more.
func waitsFor(ctx context.Context, e chain.Explorer, b blocker.Blocker, u user) blocker.Blocker {
	b.Object = cluster.ObjectOf(u.object)
	namespace, name := u.object.GetNamespace(), u.object.GetName()
	if u.object.GetDeletionTimestamp() == nil {
		b.Next = giveUp(e, u.wait, u.loss, namespace, u.resource, name)
		return b
	}
	return explainDeleted(ctx, e, b, u.object, u.resource)
}

// explainDeleted completes the blocker of an object that is being deleted with what it waits for.
func explainDeleted(ctx context.Context, e chain.Explorer, b blocker.Blocker, object *unstructured.Unstructured, resource string) blocker.Blocker {
	b.Evidence = append(b.Evidence, evidence(blocker.FromField, "%s is being deleted since %s", cluster.ObjectOf(object), askedAt(object)))
	b.Next = cluster.Steps(object.GetKind()+" "+object.GetName()+" is being deleted. See what it waits for", e.Commands().Exeunt(object.GetNamespace(), "why", resource+"/"+object.GetName()))
	b.Blockers = append(b.Blockers, e.Explain(ctx, object)...)
	return b
}

// objectsOf returns the typed objects as the explorer takes them.
func objectsOf[T any](e chain.Explorer, apiVersion, kind string, typed []T) []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for i := range typed {
		object, err := toUnstructured(apiVersion, kind, &typed[i])
		if err != nil {
			e.Reader().Note("could not read a %s: %v", kind, err)
			continue
		}
		all = append(all, object)
	}
	return all
}

// livingFirst returns one of the users that nobody has deleted, if there is one, and those that are
// being deleted: each of these has a blocker of its own.
func livingFirst(users []*unstructured.Unstructured) []*unstructured.Unstructured {
	var living, deleted []*unstructured.Unstructured
	for _, one := range users {
		switch {
		case isDeleted(one):
			deleted = append(deleted, one)
		case len(living) == 0:
			living = append(living, one)
		}
	}
	return append(living, deleted[:min(len(deleted), maxUsers)]...)
}

// blockersOfUsers returns the blocker for each user that counts: the first that nobody deleted, and
// those that are being deleted.
func blockersOfUsers(ctx context.Context, e chain.Explorer, b blocker.Blocker, users []*unstructured.Unstructured, like user) []blocker.Blocker {
	var all []blocker.Blocker
	for _, one := range livingFirst(users) {
		like.object = one
		copied := b
		copied.Evidence = append([]blocker.Evidence{}, b.Evidence...)
		all = append(all, waitsFor(ctx, e, copied, like))
	}
	if len(all) == 0 {
		return []blocker.Blocker{b}
	}
	return all
}

// reportedController returns which controller a waiting deletion is reported for: the users' controller if it is
// gone, otherwise the controller that removes the finalizer.
func reportedController(remover, users holder.Finding) holder.Finding {
	gone := func(f holder.Finding) bool {
		reason, _ := blocker.JudgeController(f.State)
		return reason == blocker.ControllerGone
	}
	if gone(users) && !gone(remover) {
		return users
	}
	return remover
}

// claimsThatWait returns the blockers of claims that wait for a volume from the object.
func claimsThatWait(ctx context.Context, e chain.Explorer, b blocker.Blocker, claims []corev1.PersistentVolumeClaim, wait, loss string) []blocker.Blocker {
	return blockersOfUsers(ctx, e, b, objectsOf(e, "v1", "PersistentVolumeClaim", claims), user{resource: "pvc", wait: wait, loss: loss})
}
