package api

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/owners"
)

// explainForeground returns what the finalizer foregroundDeletion waits for: dependents that
// block the owner's deletion, then the garbage collector.
func explainForeground(ctx context.Context, e chain.Explorer, owner *unstructured.Unstructured,
	finalizer string) blocker.Blocker {
	collector := judgeCollector(ctx, e, owner, finalizer)
	content := surveyOf(ctx, e, owner)
	dependents := owners.Blocking(content.items, owner.GetUID())
	if len(dependents) == 0 && content.isComplete() {
		return collector.Blocker
	}
	unseen := dependentsUnseen(e, owner, content)
	unseen.Evidence = append(unseen.Evidence, collector.told(waitsForKinds)...)
	found := unseen
	if len(dependents) > 0 {
		found = dependentsRemain(ctx, e, owner, dependents, collector)
		if cycle := owners.Cycle(content.items, owner.GetUID()); cycle != nil {
			asCycle(e, &found, owner, cycle, collector)
		}
		if !content.isComplete() {
			found.Blockers = append(found.Blockers, unseen)
		}
	}
	found.Finalizer = finalizer
	if collector.Verdict == blocker.Stuck {
		found.Blockers = append(found.Blockers, collector.Blocker)
	}
	return found
}

// dependentsRemain returns the blocker of an owner with dependents, and what these wait for.
func dependentsRemain(ctx context.Context, e chain.Explorer, owner *unstructured.Unstructured, dependents []item,
	collector collector) blocker.Blocker {
	deleting, others := split(dependents)
	slices.SortFunc(dependents, compareItems)
	first := dependents[0]
	found := blocker.Blocker{
		Object: objectOf(first), Reason: blocker.DependentsRemain, Verdict: blocker.Waiting, Holder: collector.Holder,
		Since: askedAt(owner),
		Evidence: []blocker.Evidence{evidence(blocker.FromField, "ownerReferences name %s with blockOwnerDeletion, in %s",
			cluster.ObjectOf(owner), shortened(names(dependents), 8))},
		Next: cluster.Steps("the dependents have to go first. What they wait for follows",
			e.Commands().Show(first.Namespace, first.resource.GroupResource().String(), first.Name)),
	}
	if len(others) > 0 {
		found.Verdict = collector.verdictOfWork()
		found.Evidence = append(found.Evidence, evidence(blocker.FromList, "not being deleted yet: %s",
			shortened(counts(others), 8)))
		found.Evidence = append(found.Evidence, collector.Evidence...)
		found.Next = nextOfDependent(e.Commands(), collector.controller, owner.GetUID(), others[0])
	}
	found.Blockers = append(found.Blockers, keptDependents(e, owner, others)...)
	if len(others) == 0 {
		found.Evidence = append(found.Evidence, collector.told("")...)
	}
	for _, remains := range terminating(ctx, e, deleting) {
		found.Blockers = append(found.Blockers, remains.Blockers...)
	}
	return found
}

// nextOfDependent returns the next step for a dependent that is not being deleted yet. The garbage
// collector keeps one that has other owners, so no step deletes it.
func nextOfDependent(commands cluster.Commands, by controller, owner types.UID, dependent item) string {
	next := waitFor(commands, by, dependent)
	if slices.ContainsFunc(dependent.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID != owner }) {
		return next
	}
	return next + "\n" + deletion(commands, dependent)
}

// waitFor returns the step that shows an object which the controller deletes, if it works.
func waitFor(commands cluster.Commands, by controller, object item) string {
	sentence := "wait until the object is deleted"
	if by.Verdict == blocker.Stuck {
		sentence = "nothing deletes the object until its controller works again: see what that needs"
	}
	return cluster.Steps(sentence, commands.Show(object.Namespace, object.resource.GroupResource().String(), object.Name))
}

// deletion returns the last resort for such an object.
func deletion(commands cluster.Commands, object item) string {
	return cluster.LastResort("the object goes, with the data that it keeps",
		commands.Kubectl(object.Namespace, "delete", object.resource.GroupResource().String(), object.Name))
}

// asCycle makes the blocker say that owner and dependents wait for each other. Only
// garbage-collector of Exeunt ends cycles of any size.
func asCycle(e chain.Explorer, found *blocker.Blocker, owner *unstructured.Unstructured, cycle []item,
	collector collector) {
	member := owners.Blocking(cycle, owner.GetUID())[0]
	index := owners.ReferenceTo(member, owner.GetUID())
	patch := fmt.Sprintf(`[{"op":"test","path":"/metadata/ownerReferences/%d/uid","value":%q},{"op":"remove","path":"/metadata/ownerReferences/%d"}]`,
		index, owner.GetUID(), index)
	found.Object, found.Reason, found.Verdict = objectOf(member), blocker.OwnerCycle, blocker.Stuck
	found.Evidence = append(found.Evidence, evidence(blocker.FromField,
		"all are being deleted in the foreground, and each waits for the next: %s", shortened(names(cycle), 8)))
	advice := "remove one owner reference of the cycle"
	if collector.own {
		found.Verdict, advice = blocker.Waiting, "wait for garbage-collector, which releases the cycle; or "+advice
		found.Evidence = append(found.Evidence, evidence(blocker.FromWorkload, releasesCycles))
	}
	resource := member.resource.GroupResource().String()
	found.Next = cluster.Steps(advice, e.Commands().Kubectl(member.Namespace, "get", resource, member.Name)) + "\n" +
		cluster.LastResort("only if all objects of the cycle are to go",
			e.Commands().Kubectl(member.Namespace, "patch", resource, member.Name, "--type=json", "-p", patch))
}

// dependentsUnseen returns the blocker of an owner with kinds that could not be listed.
func dependentsUnseen(e chain.Explorer, owner *unstructured.Unstructured, content survey) blocker.Blocker {
	unseen := blocker.Blocker{
		Object: cluster.ObjectOf(owner), Reason: blocker.DependentsUnseen, Verdict: blocker.Unknown, Since: askedAt(owner),
		Evidence: []blocker.Evidence{evidence(blocker.FromList, "could not be listed, and may have dependents: %s",
			shortened(content.missedNames(), 12))},
		Next: cluster.Steps("list these kinds", e.Commands().Kubectl("", "api-resources", "--verbs=list")),
	}
	for _, resource := range content.missed[:min(len(content.missed), 3)] {
		if err := listFailure(e, resource, owner.GetNamespace()); err != nil {
			unseen.Evidence = append(unseen.Evidence, evidence(blocker.FromList, "the list of %s fails: %s",
				resource.GroupResource(), oneLine(err)))
		}
	}
	return unseen
}

// explainOrphan returns what the finalizer "orphan" waits for: the garbage collector removes
// the owner references of the dependents, then the finalizer.
func explainOrphan(ctx context.Context, e chain.Explorer, owner *unstructured.Unstructured,
	finalizer string) blocker.Blocker {
	collector := judgeCollector(ctx, e, owner, finalizer)
	found := collector.Blocker
	if found.Reason == blocker.ControllerActs {
		found.Reason = blocker.OrphanPending
	}
	if collector.own {
		addReferring(ctx, e, owner, &found)
	}
	found.Evidence = append(found.Evidence, evidence(blocker.FromField,
		"the deletion was requested with the propagation policy Orphan, which adds the finalizer %s",
		metav1.FinalizerOrphanDependents))
	return found
}

// addReferring adds the dependents that still name the owner, and the kinds that may have some.
func addReferring(ctx context.Context, e chain.Explorer, owner *unstructured.Unstructured, found *blocker.Blocker) {
	content := surveyOf(ctx, e, owner)
	if referring := owners.Referring(content.items, owner.GetUID()); len(referring) > 0 {
		found.Evidence = append(found.Evidence, evidence(blocker.FromList, "ownerReferences still name %s: %s",
			cluster.ObjectOf(owner), shortened(counts(referring), 8)))
	}
	if !content.isComplete() {
		unseen := dependentsUnseen(e, owner, content)
		unseen.Evidence = append(unseen.Evidence, evidence(blocker.FromWorkload, waitsForKindsOrphan))
		found.Blockers = append(found.Blockers, unseen)
	}
}

func names(items []item) []string {
	all := make([]string, len(items))
	for i, object := range items {
		all[i] = objectOf(object).String()
	}
	return all
}
