package storage

import (
	"context"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/blocker/volume"
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
func explainDeleted(ctx context.Context, e chain.Explorer, b blocker.Blocker, object *unstructured.Unstructured,
	resource string) blocker.Blocker {
	b.Evidence = append(b.Evidence, evidence(blocker.FromField, "%s is being deleted since %s", cluster.ObjectOf(object),
		askedAt(object)))
	b.Next = cluster.Steps(object.GetKind()+" "+object.GetName()+" is being deleted. See what it waits for",
		e.Commands().Exeunt(object.GetNamespace(), "why", resource+"/"+object.GetName()))
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
func blockersOfUsers(ctx context.Context, e chain.Explorer, b blocker.Blocker, users []*unstructured.Unstructured,
	like user) []blocker.Blocker {
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
func claimsThatWait(ctx context.Context, e chain.Explorer, b blocker.Blocker, claims []corev1.PersistentVolumeClaim,
	wait, loss string) []blocker.Blocker {
	return blockersOfUsers(ctx, e, b, objectsOf(e, "v1", "PersistentVolumeClaim", claims),
		user{resource: "pvc", wait: wait, loss: loss})
}

// snapshots explains the finalizer of a claim that snapshots are taken from.
func (c *claimChain) snapshots(ctx context.Context) []blocker.Blocker {
	all, seen := cluster.List(ctx, c.Reader(), cluster.VolumeSnapshots, cluster.Selection{Namespace: c.typed.Namespace})
	var users []snapshotv1.VolumeSnapshot
	for i := range all {
		source := all[i].Spec.Source.PersistentVolumeClaimName
		if source != nil && *source == c.typed.Name && !isReady(&all[i]) {
			users = append(users, all[i])
		}
	}
	finding := look(ctx, c, snapshotSource, "PersistentVolumeClaim", "", "")
	s := volume.UseState{Used: volume.FactOf(len(users) > 0, seen), Error: volume.No, Remover: finding.State}
	facts := []blocker.Evidence{evidence(blocker.FromList, "no snapshot is being taken from the claim")}
	makers := holder.Finding{}
	if len(users) > 0 {
		facts, s.Error = c.snapshotFacts(users)
		makers = look(ctx, c, single.contentFinalizer, single.content, single.group, c.driver(ctx))
		s.Users = makers.State
	}
	b := judged(c.blocker(snapshotSource), volume.InUse(s, blocker.SnapshotRunning), reportedController(finding, makers))
	b.Evidence = append(facts, b.Evidence...)
	if len(users) > 0 && b.Reason == blocker.ControllerFails {
		b.Next = cluster.Steps("the snapshot cannot be taken: mend what its error says. The driver is asked again",
			c.Commands().Kubectl(users[0].Namespace, "describe", single.command, users[0].Name))
	}
	if len(users) == 0 || b.Reason != blocker.SnapshotRunning {
		return []blocker.Blocker{b}
	}
	return blockersOfUsers(ctx, c, b, objectsOf(c, snapshotv1.SchemeGroupVersion.String(), single.snapshot, users),
		user{resource: single.command, wait: "wait until the snapshot is ready", loss: "this gives the snapshot up"})
}

func isReady(snapshot *snapshotv1.VolumeSnapshot) bool {
	return snapshot.Status != nil && snapshot.Status.ReadyToUse != nil && *snapshot.Status.ReadyToUse
}

// snapshotFacts returns what the snapshots that are being taken say, and whether one
// reports an error now.
func (c *claimChain) snapshotFacts(snapshots []snapshotv1.VolumeSnapshot) ([]blocker.Evidence, volume.Fact) {
	var facts []blocker.Evidence
	fails := volume.No
	for i := range snapshots {
		facts = append(facts, evidence(blocker.FromField, "VolumeSnapshot %s is taken from the claim, and is not ready",
			snapshots[i].Name))
		if status := snapshots[i].Status; status != nil && status.Error != nil && status.Error.Message != nil {
			facts = append(facts, evidence(blocker.FromField, "status.error of VolumeSnapshot %s: %s", snapshots[i].Name,
				*status.Error.Message))
			if status.Error.Time != nil && isRecent(c.Reader(), status.Error.Time.Time) &&
				volume.IsRefusal(*status.Error.Message) {
				fails = volume.Yes
			}
		}
	}
	return facts, fails
}
