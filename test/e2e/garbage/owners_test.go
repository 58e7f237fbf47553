package garbage

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// owners are objects with several owners, or with absent ones.
var owners = []scenario{
	{name: "two owners deleted in the background, one after the other", about: designDocument, run: func(w *world) {
		first, second := w.create(configMaps, "first"), w.create(configMaps, "second")
		w.create(secrets, "dependent", ownedBy(reference(first), reference(second)))
		w.delete(configMaps, "first", background)
		w.awaitOwners(secrets, "dependent", "second")
		w.expectKept(secrets, "dependent")
		w.delete(configMaps, "second", background)
		w.awaitGone(secrets, "dependent")
	}},
	{name: "two owners, one deleted in the foreground: the reference is removed", about: designDocument,
		run: func(w *world) {
			first, second := w.create(configMaps, "first"), w.create(configMaps, "second")
			w.create(secrets, "dependent", ownedBy(reference(first), reference(second)), finalizers(foreign))
			w.delete(configMaps, "second", foreground)
			w.awaitGone(configMaps, "second")
			w.awaitOwners(secrets, "dependent", "first")
			w.expectKept(secrets, "dependent")
		}},
	{name: "two owners, both deleted in the foreground", about: designDocument, run: func(w *world) {
		first, second := w.create(configMaps, "first"), w.create(configMaps, "second")
		w.create(secrets, "dependent", ownedBy(reference(first), reference(second)), frozen("ALL"))
		w.delete(configMaps, "first", foreground)
		w.delete(configMaps, "second", foreground)
		w.expectWaiting(configMaps, "first")
		w.expectWaiting(configMaps, "second")
		w.thaw(secrets, "dependent")
		w.awaitGone(configMaps, "first")
		w.awaitGone(configMaps, "second")
		w.expectGone(secrets, "dependent")
	}},
	{name: "two owners, one in the foreground and one absent", run: func(w *world) {
		owner := w.create(configMaps, "owner")
		w.create(secrets, "dependent", ownedBy(reference(owner)), frozen("ALL"), w.absentOwner())
		w.delete(configMaps, "owner", foreground)
		w.expectWaiting(configMaps, "owner")
		w.thaw(secrets, "dependent")
		w.awaitGone(configMaps, "owner")
		w.expectGone(secrets, "dependent")
	}},
	{name: "two owners, one in the foreground and one terminating in the background", run: func(w *world) {
		first, second := w.create(configMaps, "first"), w.create(configMaps, "second", finalizers(foreign))
		w.create(secrets, "dependent", ownedBy(reference(first), reference(second)))
		w.delete(configMaps, "second", background)
		w.delete(configMaps, "first", foreground)
		w.awaitGone(configMaps, "first")
		w.awaitOwners(secrets, "dependent", "second")
		w.expectKept(secrets, "dependent")
		w.setFinalizers(configMaps, "second")
		w.awaitGone(secrets, "dependent")
	}},
	{name: "two owners, one orphans: the reference to the other one stays", run: func(w *world) {
		first, second := w.create(configMaps, "first"), w.create(configMaps, "second")
		w.create(secrets, "dependent", ownedBy(reference(first), reference(second)))
		w.delete(configMaps, "first", orphan)
		w.awaitGone(configMaps, "first")
		w.awaitOwners(secrets, "dependent", "second")
		w.delete(configMaps, "second", background)
		w.awaitGone(secrets, "dependent")
	}},
	{name: "two owners, one orphans and one is absent: the dependent stays", run: func(w *world) {
		owner := w.create(configMaps, "owner")
		w.create(secrets, "dependent", ownedBy(reference(owner)), w.absentOwner())
		w.awaitOwners(secrets, "dependent", "owner")
		w.delete(configMaps, "owner", orphan)
		w.awaitGone(configMaps, "owner")
		w.awaitOwners(secrets, "dependent")
		w.expectKept(secrets, "dependent")
	}},
	{name: "two owners that do not block, both deleted in the foreground", run: func(w *world) {
		first, second := w.create(configMaps, "first"), w.create(configMaps, "second")
		w.create(secrets, "dependent", ownedBy(unblocking(reference(first)), notBlocking(reference(second))), frozen("ALL"))
		w.delete(configMaps, "first", foreground)
		w.delete(configMaps, "second", foreground)
		w.awaitGone(configMaps, "first")
		w.awaitGone(configMaps, "second")
		w.thaw(secrets, "dependent")
		w.awaitGone(secrets, "dependent")
	}},
	{name: "two owners, the blocking one in the foreground and the other one live", run: func(w *world) {
		first, second := w.create(configMaps, "first"), w.create(configMaps, "second")
		w.create(secrets, "dependent", ownedBy(reference(first), unblocking(reference(second))))
		w.delete(configMaps, "first", foreground)
		w.awaitGone(configMaps, "first")
		w.awaitOwners(secrets, "dependent", "second")
	}},
	{name: "owner and grandowner of one dependent, both deleted in the foreground", run: func(w *world) {
		owner := w.create(configMaps, "owner")
		child := w.create(secrets, "child", ownedBy(reference(owner)))
		w.create(serviceAccounts, "dependent", ownedBy(reference(owner), reference(child)), finalizers(foreign))
		w.delete(configMaps, "owner", foreground)
		w.awaitDeleted(serviceAccounts, "dependent")
		w.expectWaiting(secrets, "child")
		w.expectWaiting(configMaps, "owner")
		w.setFinalizers(serviceAccounts, "dependent")
		w.awaitGone(configMaps, "owner")
		w.expectGone(secrets, "child")
	}},
	{name: "three owners: live, in the foreground, and absent", run: func(w *world) {
		first, second := w.create(configMaps, "first"), w.create(configMaps, "second")
		w.create(secrets, "dependent", ownedBy(reference(first), reference(second)), w.absentOwner())
		w.delete(configMaps, "second", foreground)
		w.awaitGone(configMaps, "second")
		w.awaitOwners(secrets, "dependent", "first")
		w.expectKept(secrets, "dependent")
	}},
	{name: "an absent owner beside a live one: the reference is removed", run: func(w *world) {
		owner := w.create(configMaps, "owner")
		w.create(secrets, "dependent", ownedBy(reference(owner)), w.absentOwner())
		w.awaitOwners(secrets, "dependent", "owner")
		w.expectKept(secrets, "dependent")
	}},
	{name: "an absent owner: the dependent is deleted", run: func(w *world) {
		w.create(secrets, "dependent", w.absentOwner())
		w.awaitGone(secrets, "dependent")
	}},
	{name: "an absent owner of a custom kind", run: func(w *world) {
		w.create(secrets, "dependent",
			ownedBy(metav1.OwnerReference{APIVersion: widgets.apiVersion(), Kind: "Widget", Name: "absent", UID: uid(1)}))
		w.awaitGone(secrets, "dependent")
	}},
	{name: "an absent cluster-scoped owner", run: func(w *world) {
		w.create(secrets, "dependent",
			ownedBy(metav1.OwnerReference{APIVersion: classes.apiVersion(), Kind: "PriorityClass", Name: "absent", UID: uid(1)}))
		w.create(fleets, "dependent",
			ownedBy(metav1.OwnerReference{APIVersion: classes.apiVersion(), Kind: "PriorityClass", Name: "absent", UID: uid(2)}))
		w.awaitGone(secrets, "dependent")
		w.awaitGone(fleets, "dependent")
	}},
	{name: "25 absent owners: the dependent is deleted", run: func(w *world) {
		w.create(secrets, "dependent", ownedBy(bogus(25)...))
		w.awaitGone(secrets, "dependent")
	}},
	{name: "25 absent owners and a live one: 25 references are removed", run: func(w *world) {
		owner := w.create(configMaps, "owner")
		references := bogus(25)
		references[12] = reference(owner)
		w.create(secrets, "dependent", ownedBy(references...), ownedBy(bogus(25)[12]))
		w.awaitOwners(secrets, "dependent", "owner")
		w.expectKept(secrets, "dependent")
	}},
	{name: "an owner that is gone before the dependent is created", run: func(w *world) {
		owner := w.create(configMaps, "owner")
		w.delete(configMaps, "owner", background)
		w.create(secrets, "dependent", ownedBy(reference(owner)))
		w.awaitGone(secrets, "dependent")
	}},
	{name: "garbage with dependents is deleted in the background", run: func(w *world) {
		child := w.create(secrets, "child", frozen("DELETE"), w.absentOwner())
		w.create(serviceAccounts, "grandchild", ownedBy(reference(child)), finalizers(foreign))
		w.thaw(secrets, "child")
		w.awaitGone(secrets, "child")
		w.awaitDeleted(serviceAccounts, "grandchild")
	}},
	{name: "an owner that terminates in the background keeps its dependents until it is gone", run: func(w *world) {
		owner := w.create(configMaps, "owner", finalizers(foreign))
		w.create(secrets, "dependent", ownedBy(reference(owner)))
		w.delete(configMaps, "owner", background)
		w.expectKept(secrets, "dependent")
		w.setFinalizers(configMaps, "owner")
		w.awaitGone(secrets, "dependent")
	}},
	{name: "a live owner added keeps the dependent", run: func(w *world) {
		first, second := w.create(configMaps, "first"), w.create(configMaps, "second")
		w.create(secrets, "dependent", ownedBy(reference(first)), frozen("DELETE"))
		w.delete(configMaps, "first", background)
		w.own(secrets, "dependent", reference(first), reference(second))
		w.thaw(secrets, "dependent")
		w.awaitOwners(secrets, "dependent", "second")
		w.expectKept(secrets, "dependent")
	}},
	{name: "references swapped keep the dependent", about: "kubernetes#114603", run: func(w *world) {
		first, second := w.create(configMaps, "first"), w.create(configMaps, "second")
		w.create(secrets, "dependent", ownedBy(reference(first)), frozen("DELETE"))
		w.delete(configMaps, "first", foreground)
		w.expectWaiting(configMaps, "first")
		w.own(secrets, "dependent", reference(second))
		w.awaitGone(configMaps, "first")
		w.thaw(secrets, "dependent")
		w.expectKept(secrets, "dependent")
	}},
}

// bogus returns references to owners that never existed, of several kinds.
func bogus(count int) []metav1.OwnerReference {
	kinds := []kind{configMaps, secrets, serviceAccounts, widgets, classes, fleets}
	references := make([]metav1.OwnerReference, count)
	for i := range references {
		k := kinds[i%len(kinds)]
		references[i] = metav1.OwnerReference{APIVersion: k.apiVersion(), Kind: k.name, Name: "absent", UID: uid(i)}
	}
	return references
}
