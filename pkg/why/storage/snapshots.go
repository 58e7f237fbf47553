package storage

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/blocker/volume"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/holder"
)

// snapshotKinds are a snapshot and its content, alone or of a group.
type snapshotKinds struct {
	group             string // API group
	snapshot, content string // kinds
	contentName       string // field in the status of the snapshot
	snapshotRef       string // field in the spec of the content
	// snapshotFinalizer and contentFinalizer keep them while they name each other.
	snapshotFinalizer, contentFinalizer string
	// command is the resource for kubectl.
	command string
}

var (
	single = snapshotKinds{
		group: storage.SnapshotGroup, snapshot: "VolumeSnapshot", content: "VolumeSnapshotContent",
		contentName: "boundVolumeSnapshotContentName", snapshotRef: "volumeSnapshotRef",
		snapshotFinalizer: "snapshot.storage.kubernetes.io/volumesnapshot-bound-protection",
		contentFinalizer:  "snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection",
		command:           "volumesnapshot",
	}
	grouped = snapshotKinds{
		group: "groupsnapshot.storage.k8s.io", snapshot: "VolumeGroupSnapshot", content: "VolumeGroupSnapshotContent",
		contentName: "boundVolumeGroupSnapshotContentName", snapshotRef: "volumeGroupSnapshotRef",
		snapshotFinalizer: "groupsnapshot.storage.kubernetes.io/volumegroupsnapshot-bound-protection",
		contentFinalizer:  "groupsnapshot.storage.kubernetes.io/volumegroupsnapshotcontent-bound-protection",
		command:           "volumegroupsnapshot",
	}
)

const (
	// restoredSource keeps a snapshot while volumes are restored from it, set by snapshot-controller.
	restoredSource = "snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection"
	// beingDeleted is on a content whose snapshot was deleted.
	beingDeleted = "snapshot.storage.kubernetes.io/volumesnapshot-being-deleted"
	// groupMember keeps a snapshot while its group exists.
	groupMember = "snapshot.storage.kubernetes.io/volumesnapshot-in-group-protection"
)

// read reads an object of the group.
func (k snapshotKinds) read(ctx context.Context, e chain.Explorer, kind, namespace,
	name string) (*unstructured.Unstructured, cluster.Presence) {
	mapping, err := e.Reader().Mapper().RESTMapping(schema.GroupKind{Group: k.group, Kind: kind})
	switch {
	case meta.IsNoMatchError(err):
		return nil, cluster.Absent
	case err != nil:
		e.Reader().Note("could not find the kind %s.%s: %v", kind, k.group, err)
		return nil, cluster.Unseen
	}
	object, presence, _ := e.Reader().Live(ctx, cluster.Ref{Resource: mapping.Resource, Kind: kind, Namespace: namespace,
		Name: name})
	return object, presence
}

// explainSnapshot returns what the deletion of a snapshot waits for.
func (k snapshotKinds) explainSnapshot(ctx context.Context, e chain.Explorer,
	object *unstructured.Unstructured) []blocker.Blocker {
	var all []blocker.Blocker
	for _, name := range object.GetFinalizers() {
		switch name {
		case k.snapshotFinalizer:
			all = append(all, k.explainBound(ctx, e, object, name)...)
		case groupMember:
			all = append(all, memberOf(ctx, e, object, name)...)
		case restoredSource, string(finalizer.SnapshotSource):
			all = append(all, restored(ctx, e, object, name)...)
		default:
			all = append(all, e.Finalizer(ctx, object, name))
		}
	}
	return all
}

// explainBound explains the finalizer that keeps a snapshot for its content.
func (k snapshotKinds) explainBound(ctx context.Context, e chain.Explorer, object *unstructured.Unstructured,
	name string) []blocker.Blocker {
	if found := groupOf(ctx, e, object, name); len(found) > 0 {
		return found
	}
	content, _, _ := unstructured.NestedString(object.Object, "status", k.contentName)
	if content == "" {
		content, _, _ = unstructured.NestedString(object.Object, "spec", "source", "volumeSnapshotContentName")
	}
	var found []blocker.Blocker
	fact := evidence(blocker.FromField, "the %s names no content", k.snapshot)
	if content != "" {
		bound, presence := k.read(ctx, e, k.content, "", content)
		fact = evidence(blocker.FromField, "%s %s is %s", k.content, content, presence)
		switch {
		case presence != cluster.Present:
		case bound.GetDeletionTimestamp() != nil:
			found = e.Explain(ctx, bound)
		case bound.GetAnnotations()[beingDeleted] != "":
			found = k.explainContent(ctx, e, bound)
		}
	}
	for i := range found {
		found[i].Finalizer = name
	}
	if len(found) > 0 {
		return found
	}
	b := e.Finalizer(ctx, object, name)
	b.Evidence = append([]blocker.Evidence{fact}, b.Evidence...)
	return []blocker.Blocker{b}
}

// memberOf explains the finalizer of a member of a group.
func memberOf(ctx context.Context, e chain.Explorer, object *unstructured.Unstructured, name string) []blocker.Blocker {
	if found := groupOf(ctx, e, object, name); len(found) > 0 {
		return found
	}
	return []blocker.Blocker{e.Finalizer(ctx, object, name)}
}

// groupOf returns a blocker if the snapshot belongs to a group that exists.
func groupOf(ctx context.Context, e chain.Explorer, object *unstructured.Unstructured, name string) []blocker.Blocker {
	group, _, _ := unstructured.NestedString(object.Object, "status", "volumeGroupSnapshotName")
	for _, owner := range object.GetOwnerReferences() {
		if group == "" && owner.Kind == grouped.snapshot {
			group = owner.Name
		}
	}
	if group == "" {
		return nil
	}
	found, presence := grouped.read(ctx, e, grouped.snapshot, object.GetNamespace(), group)
	b := blocker.Blocker{
		Object: blocker.Object{Kind: grouped.snapshot, Group: grouped.group, Namespace: object.GetNamespace(),
			Name: group},
		Finalizer: name, Reason: blocker.SnapshotBound, Since: askedAt(object),
		Evidence: []blocker.Evidence{evidence(blocker.FromField, "status.volumeGroupSnapshotName is %s, which is %s", group,
			presence)},
		Next: cluster.Steps("a member goes with its group", e.Commands().
			Kubectl(object.GetNamespace(), "get", grouped.command, group)),
	}
	switch presence {
	case cluster.Present:
		b.Verdict = blocker.Waiting
		b = waitsFor(ctx, e, b, user{found, grouped.command, "a member goes with its group",
			"this deletes all snapshots of the group"})
	case cluster.Unseen:
		b.Verdict = blocker.Unknown
	case cluster.Absent:
		return nil
	}
	return []blocker.Blocker{b}
}

// restored explains a finalizer that keeps a snapshot while volumes are restored from it.
func restored(ctx context.Context, e chain.Explorer, object *unstructured.Unstructured, name string) []blocker.Blocker {
	s := subject[unstructured.Unstructured]{e, object, object}
	claims, seen := cluster.List(ctx, e.Reader(), cluster.PersistentVolumeClaims,
		cluster.Selection{Namespace: object.GetNamespace()})
	users := waitingClaims(claims, storage.DataSource{Kind: storage.SourceSnapshot, Namespace: object.GetNamespace(),
		Name: object.GetName()})
	facts := []blocker.Evidence{evidence(blocker.FromList, "no claim waits for a volume from the snapshot")}
	state := volume.UseState{Used: volume.FactOf(len(users) > 0, seen), Error: volume.No}
	driver, makers := "", holder.Finding{}
	if len(users) > 0 {
		driver = driverOfClaim(ctx, e, &users[0])
		facts = claimFacts(users)
		state.Error = s.provisioningFails(ctx, users, &facts)
		makers = look(ctx, e, string(finalizer.External), "PersistentVolume", "", driver)
		state.Users = makers.State
	}
	finding := look(ctx, e, name, "VolumeSnapshot", storage.SnapshotGroup, driver)
	state.Remover = finding.State
	b := blocker.Blocker{Object: cluster.ObjectOf(object), Finalizer: name, Since: askedAt(object)}
	b = judged(b, volume.InUse(state, blocker.SnapshotRunning), reportedController(finding, makers))
	b.Evidence = append(facts, b.Evidence...)
	switch {
	case len(users) > 0 && b.Reason == blocker.SnapshotRunning:
		return claimsThatWait(ctx, e, b, users, "wait until the claim has its volume", "this gives the claim up")
	case len(users) > 0 && b.Reason == blocker.ControllerFails:
		b.Next = mendOrGiveUp(e, "the volume cannot be restored: mend what the error says; it is retried",
			"this gives the claim up", &users[0])
	}
	return []blocker.Blocker{b}
}

// explainContent returns what the deletion of a content waits for.
func (k snapshotKinds) explainContent(ctx context.Context, e chain.Explorer,
	object *unstructured.Unstructured) []blocker.Blocker {
	var all []blocker.Blocker
	for _, name := range object.GetFinalizers() {
		if name == k.contentFinalizer {
			all = append(all, k.contentBlocker(ctx, e, object, name))
			continue
		}
		all = append(all, e.Finalizer(ctx, object, name))
	}
	return all
}

func (k snapshotKinds) contentBlocker(ctx context.Context, e chain.Explorer, object *unstructured.Unstructured,
	name string) blocker.Blocker {
	driver, _, _ := unstructured.NestedString(object.Object, "spec", "driver")
	policy, _, _ := unstructured.NestedString(object.Object, "spec", "deletionPolicy")
	finding := look(ctx, e, name, k.content, k.group, driver)
	bound, snapshot, facts := k.boundTo(ctx, e, object)
	failed, failures := k.contentError(ctx, e, object, driver)
	judgment := volume.Content(volume.ContentState{Bound: bound,
		Deletes: policy == string(corev1.PersistentVolumeReclaimDelete), Error: failed, Sidecar: finding.State})
	b := judged(blocker.Blocker{Object: cluster.ObjectOf(object), Finalizer: name, Since: askedAt(object)}, judgment,
		finding)
	switch judgment.Reason {
	case blocker.SnapshotBound:
		b.Object, b.Holder = snapshot, "the user of "+snapshot.String()
		b.Evidence = facts
		b.Next = giveUp(e, "the content goes with its "+k.snapshot,
			"this gives the snapshot up; the deletion policy of the content is "+policy,
			snapshot.Namespace, k.command, snapshot.Name)
	case blocker.DriverRefuses:
		b.Evidence = append(failures, b.Evidence...)
		b.Next = cluster.Steps("mend what the error of "+driver+
			" says, such as a clone that depends on the snapshot. The deletion is retried",
			e.Commands().Kubectl("", "describe", k.command+"content", object.GetName()))
	default:
		b.Evidence = append(append(facts, failures...), b.Evidence...)
	}
	return b
}

// boundTo reports whether the snapshot of the content exists and stays.
func (k snapshotKinds) boundTo(ctx context.Context, e chain.Explorer,
	content *unstructured.Unstructured) (volume.Fact, blocker.Object, []blocker.Evidence) {
	ref, _, _ := unstructured.NestedStringMap(content.Object, "spec", k.snapshotRef)
	object := blocker.Object{Kind: k.snapshot, Group: k.group, Namespace: ref["namespace"], Name: ref["name"],
		UID: ref["uid"]}
	if ref["uid"] == "" || ref["name"] == "" {
		return volume.No, object,
			[]blocker.Evidence{evidence(blocker.FromField, "spec.%s names no %s by UID", k.snapshotRef, k.snapshot)}
	}
	snapshot, presence := k.read(ctx, e, k.snapshot, ref["namespace"], ref["name"])
	facts := []blocker.Evidence{evidence(blocker.FromField, "%s with UID %s, which spec.%s names, is %s", object,
		ref["uid"], k.snapshotRef, presence)}
	switch {
	case presence == cluster.Unseen:
		return volume.Unseen, object, facts
	case presence == cluster.Absent || string(snapshot.GetUID()) != ref["uid"]:
		return volume.No, object, facts
	case snapshot.GetDeletionTimestamp() != nil:
		return volume.No, object, append(facts, evidence(blocker.FromField, "the %s was deleted at %s", k.snapshot,
			askedAt(snapshot)))
	}
	return volume.Yes, object, facts
}

// isCreationError reports whether an error of that time is one of creating the snapshot: the
// content names no snapshot in storage, and was deleted later.
func isCreationError(content *unstructured.Unstructured, at time.Time) bool {
	for _, path := range [][]string{
		{"spec", "source", "snapshotHandle"}, {"spec", "source", "groupSnapshotHandles", "volumeGroupSnapshotHandle"},
		{"status", "snapshotHandle"}, {"status", "volumeGroupSnapshotHandle"},
	} {
		if handle, _, _ := unstructured.NestedString(content.Object, path...); handle != "" {
			return false
		}
	}
	return at.Before(deadline.Of(content).Requested()) // the zero time without a deletion
}

// contentError reports whether the deletion of the snapshot in storage fails now.
func (k snapshotKinds) contentError(ctx context.Context, e chain.Explorer, content *unstructured.Unstructured,
	driver string) (volume.Fact, []blocker.Evidence) {
	var facts []blocker.Evidence
	failed := false
	if message, _, _ := unstructured.NestedString(content.Object, "status", "error", "message"); message != "" {
		text, _, _ := unstructured.NestedString(content.Object, "status", "error", "time")
		at, err := time.Parse(time.RFC3339, text)
		failed = err == nil && isRecent(e.Reader(), at) && !isCreationError(content, at) && volume.IsRefusal(message)
		facts = append(facts, evidence(blocker.FromField, "status.error of %s: %s", text, message))
	}
	events, seen := cluster.EventsOf(ctx, e.Reader(), content.GetKind(), content)
	last := lastOf(sentBy(events, controllersOf(k.contentFinalizer, k.content, k.group), driver), "SnapshotDeleteError",
		"GroupSnapshotDeleteError")
	if last != nil {
		failed = failed || isRecent(e.Reader(), cluster.EventTime(*last)) && volume.IsRefusal(last.Message)
		facts = append(facts, evidence(blocker.FromEvent, "%s", eventText(*last)))
	}
	return volume.FactOf(failed, seen), facts
}
