package storage

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	b.Next = cluster.Steps("it is being deleted; see what it waits for", e.Commands().Exeunt(object.GetNamespace(), "why", resource+"/"+object.GetName()))
	b.Blockers = append(b.Blockers, e.Explain(ctx, object)...)
	return b
}

// livingFirst returns one of the users that nobody has deleted, if there is one, and all that are
// being deleted: each of these has a blocker of its own.
func livingFirst[T any](users []T, meta func(*T) metav1.Object) []*T {
	var living, deleted []*T
	for i := range users {
		switch {
		case meta(&users[i]).GetDeletionTimestamp() != nil:
			deleted = append(deleted, &users[i])
		case len(living) == 0:
			living = append(living, &users[i])
		}
	}
	return append(living, deleted[:min(len(deleted), maxUsers)]...)
}

// blockersOfUsers returns the blocker for each user that counts: the first that nobody deleted, and
// those that are being deleted.
func blockersOfUsers[T any](ctx context.Context, e chain.Explorer, b blocker.Blocker, users []T, meta func(*T) metav1.Object,
	apiVersion, kind string, like user,
) []blocker.Blocker {
	var all []blocker.Blocker
	for _, one := range livingFirst(users, meta) {
		object, err := toUnstructured(apiVersion, kind, one)
		if err != nil {
			e.Reader().Note("could not read %s %s: %v", kind, meta(one).GetName(), err)
			continue
		}
		like.object = object
		copied := b
		copied.Evidence = append([]blocker.Evidence{}, b.Evidence...)
		all = append(all, waitsFor(ctx, e, copied, like))
	}
	if len(all) == 0 {
		return []blocker.Blocker{b}
	}
	return all
}

// whoEnds returns the finding of the program that the judgment of users speaks of: of the one that
// ends the use, if that is gone, else of the one that removes the finalizer.
func whoEnds(remover, users holder.Finding) holder.Finding {
	gone := func(f holder.Finding) bool {
		reason, _ := blocker.JudgeController(f.State)
		return reason == blocker.ControllerGone
	}
	if gone(users) && !gone(remover) {
		return users
	}
	return remover
}

func claimMeta(claim *corev1.PersistentVolumeClaim) metav1.Object { return claim }

// claimsThatWait returns the blockers of claims that wait for a volume from the object.
func claimsThatWait(ctx context.Context, e chain.Explorer, b blocker.Blocker, claims []corev1.PersistentVolumeClaim, wait, loss string) []blocker.Blocker {
	return blockersOfUsers(ctx, e, b, claims, claimMeta, "v1", "PersistentVolumeClaim", user{resource: "pvc", wait: wait, loss: loss})
}
