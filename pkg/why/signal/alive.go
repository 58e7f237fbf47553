package signal

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/families"
)

// Chains returns the chains of the kinds of this package.
func Chains() map[schema.GroupKind]chain.Chain {
	return map[schema.GroupKind]chain.Chain{{Group: alive.Group, Kind: alive.Kind}: explain}
}

// explain returns what the deletion of Alive waits for: the runner, then each participant.
func explain(ctx context.Context, e chain.Explorer, content *unstructured.Unstructured) []blocker.Blocker {
	o, err := Observe(ctx, e.Reader(), content)
	if err != nil {
		e.Reader().Note("%v", err)
		return chain.FinalizerBlockers(ctx, e, content)
	}
	var found []blocker.Blocker
	participants := alive.ParticipantsOf(content)
	for _, finalizer := range content.GetFinalizers() {
		i := slices.IndexFunc(participants, func(p alive.Participant) bool { return p.Finalizer == finalizer })
		switch {
		case finalizer == alive.Finalizer:
			found = append(found, o.runner(ctx, e, content))
		case i >= 0:
			found = append(found, o.participant(ctx, e, content, participants[i], len(participants) == 1))
		default:
			found = append(found, e.Finalizer(ctx, content, finalizer))
		}
	}
	return found
}

// Living returns what an Alive says that nobody has deleted, nothing for any other object.
func Living(ctx context.Context, e chain.Explorer, content *unstructured.Unstructured) []blocker.Blocker {
	if content.GroupVersionKind().GroupKind() != (schema.GroupKind{Group: alive.Group, Kind: alive.Kind}) {
		return nil
	}
	o, err := Observe(ctx, e.Reader(), content)
	if err != nil {
		e.Reader().Note("%v", err)
		return nil
	}
	b := blocker.Blocker{Object: cluster.ObjectOf(content), Evidence: o.evidence()}
	b.Reason, b.Verdict = Decide(o.State)
	for _, p := range alive.ParticipantsOf(content) {
		b.Evidence = append(b.Evidence, evidence(blocker.FromField, "participant %s", describe(p)))
	}
	b.Next = cluster.Steps("nothing waits. The plan says what a teardown would delete", e.Commands().Exeunt("", "teardown"))
	switch {
	case b.Reason == blocker.TeardownArmed:
		b.Next += "\n" + cluster.Comments("this begins the teardown", o.goOn(e.Commands())) + "\n" +
			cluster.Comments("this takes the permission back", o.abort(e.Commands()))
	case o.Freeze.InForce():
		b.Next += "\n" + WayBack(e.Commands())
	}
	return []blocker.Blocker{b}
}

// goOn returns the command that begins a teardown, or goes on with it.
func (o *Observation) goOn(commands cluster.Commands) string {
	id := string(o.ID)
	if id == "" {
		id = "ID"
	}
	return commands.Exeunt("", "teardown", "--confirm="+id)
}

func (o *Observation) abort(commands cluster.Commands) string {
	return commands.Exeunt("", "teardown", "--abort")
}

// runner returns what keeps the finalizer of the runner.
func (o *Observation) runner(ctx context.Context, e chain.Explorer, content *unstructured.Unstructured) blocker.Blocker {
	family, _ := families.Find(alive.Finalizer, alive.Kind, alive.Group)
	b := e.Holders().Judge(ctx, content, alive.Finalizer, family, "")
	o.State.Runner, o.State.Verdict = b.Reason, b.Verdict
	if o.unsure && b.Verdict == blocker.Waiting { // the CRD may be being deleted
		o.State.Verdict = blocker.Unknown
	}
	b.Reason, b.Verdict = Decide(o.State)
	b.Evidence = slices.Concat(o.evidence(), b.Evidence)
	commands := e.Commands()
	switch b.Reason {
	case blocker.TeardownRuns:
		b.Evidence = append(b.Evidence, o.left()...)
		b.Blockers = o.remaining(ctx, e)
		b.Next = cluster.Steps("wait until everything is gone", commands.Kubectl("", "get", alive.Resource.GroupResource().String(),
			alive.Name, "--watch"))
	case blocker.TeardownStopped:
		b.Holder = "whoever may delete Alive"
		b.Next = cluster.Steps("the teardown is stopped: "+o.Stop(), commands.Show("", alive.Resource.GroupResource().String(),
			alive.Name, "--show-managed-fields")) + "\n" + o.remedies(commands)
	default:
		b.Evidence = append(b.Evidence, o.left()...)
		b.Next = o.remedies(commands) + "\n" + b.Next
	}
	return b
}

// remedies are what a person can do about a teardown that nobody carries out.
func (o *Observation) remedies(commands cluster.Commands) string {
	all := cluster.Comments("to go on, which deletes what the plan names", o.goOn(commands)) + "\n" +
		cluster.Comments("to end it, so that the cluster lives on", o.abort(commands))
	if o.State.Protected { // else the removal is refused
		all += "\n" + WayBack(commands)
	}
	return all
}

// left counts what the status says is left.
func (o *Observation) left() []blocker.Evidence {
	status := o.Object.Status
	if status.RemainingCount == 0 {
		return nil
	}
	counts := map[string]int{}
	var kinds []string
	for _, one := range status.Remaining {
		if counts[one.Object.Kind]++; counts[one.Object.Kind] == 1 {
			kinds = append(kinds, one.Object.Kind)
		}
	}
	for i, kind := range kinds {
		kinds[i] = fmt.Sprintf("%s %d", kind, counts[kind])
	}
	return []blocker.Evidence{evidence(blocker.FromField, "status.remainingCount is %d; the oldest %d are of the kinds %s",
		status.RemainingCount, len(status.Remaining), strings.Join(kinds, ", "))}
}

// named is how many objects that remain are explained, the oldest.
const named = 10

// remaining explains the oldest objects that the teardown waits for.
func (o *Observation) remaining(ctx context.Context, e chain.Explorer) []blocker.Blocker {
	var found []blocker.Blocker
	for _, one := range o.Object.Status.Remaining {
		if one.Object.Kind == alive.Kind || len(found) == named { // participants have branches of their own
			continue
		}
		if b, left := o.remains(ctx, e, one); left {
			found = append(found, b)
		}
	}
	return found
}

// remains explains one object, and reports whether it is left.
func (o *Observation) remains(ctx context.Context, e chain.Explorer, one alive.Remaining) (blocker.Blocker, bool) {
	b := blocker.Blocker{Object: blocker.Object{Kind: one.Object.Kind, Namespace: one.Object.Namespace, Name: one.Object.Name,
		UID: string(one.Object.UID)}, Reason: blocker.TeardownRuns, Verdict: blocker.Waiting}
	if one.ExternalID != "" {
		b.Evidence = append(b.Evidence, evidence(blocker.FromField, "the external resource is %s", one.ExternalID))
	}
	if one.Reason != "" {
		b.Evidence = append(b.Evidence, evidence(blocker.FromField, "status.remaining says %s", one.Reason))
	}
	object, presence := live(ctx, e, one.Object)
	switch {
	case presence == cluster.Absent && one.Object.Kind == claimKind && one.ExternalID != "":
		return o.unanswered(e, b, one), true
	case presence == cluster.Absent, object != nil && one.Object.UID != "" && object.GetUID() != one.Object.UID:
		return b, false
	case presence == cluster.Unseen:
		b.Verdict = blocker.Unknown
		return b, true
	}
	b.Object = cluster.ObjectOf(object)
	b.Blockers = e.Explain(ctx, object)
	if claim := claimOf(ctx, e, object); claim != nil && len(b.Blockers) == 0 {
		object = claim
		b.Blockers = e.Explain(ctx, claim)
	}
	b.Since = blocker.Time(requested(object))
	if object.GetDeletionTimestamp() == nil {
		b.Evidence = append(b.Evidence, evidence(blocker.FromField, "%s is not being deleted yet", cluster.ObjectOf(object)))
	}
	b.Next = cluster.Steps("see what the object waits for", e.Commands().Exeunt(object.GetNamespace(), "why",
		strings.ToLower(object.GetKind())+"/"+object.GetName()))
	return b, true
}

// unanswered is a claim that is gone, and whose CreateVolume call has no known answer: no other object shows its disk.
func (o *Observation) unanswered(e chain.Explorer, b blocker.Blocker, one alive.Remaining) blocker.Blocker {
	b.Verdict = blocker.Unknown
	b.Evidence = append(b.Evidence, evidence(blocker.FromList, "the claim is gone; its volume was requested, and may be in storage as %s",
		one.ExternalID))
	b.Next = cluster.Steps("see whether the journal has an entry, and look for the volume in storage", e.Commands().Exeunt("", "journal", "list"))
	return b
}

// describe names a participant.
func describe(p alive.Participant) string {
	switch {
	case p.Namespace != "":
		return fmt.Sprintf("%s of namespace %s cleans up %s", p.Finalizer, p.Namespace, p.Text)
	case p.Text != "":
		return p.Finalizer + ": " + p.Text
	}
	return p.Finalizer + ", which has no annotation that says what it cleans up"
}

const claimKind = "PersistentVolumeClaim"

// groups are the groups of the kinds that a teardown deletes.
var groups = map[string]string{"Ingress": "networking.k8s.io", "Gateway": "gateway.networking.k8s.io",
	"VolumeSnapshot": "snapshot.storage.k8s.io", "VolumeSnapshotContent": "snapshot.storage.k8s.io"}

// live reads an object that the status names.
func live(ctx context.Context, e chain.Explorer, object alive.Object) (*unstructured.Unstructured, cluster.Presence) {
	mapping, err := e.Reader().Mapper().RESTMapping(schema.GroupKind{Group: groups[object.Kind], Kind: object.Kind})
	if err != nil {
		return nil, cluster.Unseen
	}
	content, presence, _ := e.Reader().Live(ctx, cluster.Ref{Resource: mapping.Resource, Kind: object.Kind,
		Namespace: object.Namespace, Name: object.Name})
	return content, presence
}

// claimOf returns the claim of a volume that is bound to it, nil if it has none, or was not seen.
func claimOf(ctx context.Context, e chain.Explorer, volume *unstructured.Unstructured) *unstructured.Unstructured {
	ref, _, _ := unstructured.NestedMap(volume.Object, "spec", "claimRef")
	if volume.GroupVersionKind().GroupKind() != (schema.GroupKind{Kind: "PersistentVolume"}) || ref == nil {
		return nil
	}
	namespace, _ := ref["namespace"].(string)
	name, _ := ref["name"].(string)
	claim, _ := live(ctx, e, alive.Object{Kind: claimKind, Namespace: namespace, Name: name})
	if uid, _ := ref["uid"].(string); claim == nil || string(claim.GetUID()) != uid {
		return nil
	}
	return claim
}
