package garbage

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// changes are deletions whose policy changes before they end. A dependent that is frozen
// keeps them from ending.
var changes = []scenario{
	{name: "foreground changed to orphan keeps a dependent that was not deleted yet", run: func(w *world) {
		owner := w.create(configMaps, "owner")
		w.create(secrets, "dependent", ownedBy(reference(owner)), frozen("DELETE"))
		w.delete(configMaps, "owner", foreground)
		w.expectWaiting(configMaps, "owner")
		w.delete(configMaps, "owner", orphan)
		w.awaitGone(configMaps, "owner")
		w.awaitOwners(secrets, "dependent")
		w.thaw(secrets, "dependent")
		w.expectKept(secrets, "dependent")
	}},
	{name: "foreground changed to orphan releases the owner from a dependent that is being deleted", run: func(w *world) {
		owner := w.create(configMaps, "owner")
		w.create(secrets, "dependent", ownedBy(reference(owner)), finalizers(foreign))
		w.delete(configMaps, "owner", foreground)
		w.awaitDeleted(secrets, "dependent")
		w.delete(configMaps, "owner", orphan)
		w.awaitGone(configMaps, "owner")
		w.awaitOwners(secrets, "dependent")
	}},
	{name: "foreground changed to background deletes the owner first", run: func(w *world) {
		owner := w.create(configMaps, "owner")
		w.create(secrets, "dependent", ownedBy(reference(owner)), frozen("DELETE"))
		w.delete(configMaps, "owner", foreground)
		w.expectWaiting(configMaps, "owner")
		w.delete(configMaps, "owner", background)
		w.awaitGone(configMaps, "owner")
		w.thaw(secrets, "dependent")
		w.awaitGone(secrets, "dependent")
	}},
	{name: "foreground changed to background leaves the child in the foreground", run: func(w *world) {
		owner := w.create(configMaps, "owner")
		child := w.create(secrets, "child", ownedBy(reference(owner)))
		w.create(serviceAccounts, "grandchild", ownedBy(reference(child)), finalizers(foreign))
		w.delete(configMaps, "owner", foreground)
		w.awaitDeleted(serviceAccounts, "grandchild")
		w.delete(configMaps, "owner", background)
		w.awaitGone(configMaps, "owner")
		w.expectWaiting(secrets, "child")
		w.setFinalizers(serviceAccounts, "grandchild")
		w.awaitGone(secrets, "child")
	}},
	{name: "orphan changed to foreground deletes the dependents first", run: func(w *world) {
		owner := w.create(configMaps, "owner")
		w.create(secrets, "dependent", ownedBy(reference(owner)), frozen("UPDATE"), finalizers(foreign))
		w.delete(configMaps, "owner", orphan)
		w.expectWaiting(configMaps, "owner")
		w.delete(configMaps, "owner", foreground)
		w.awaitDeleted(secrets, "dependent")
		w.expectWaiting(configMaps, "owner")
		w.setFinalizers(secrets, "dependent")
		w.awaitGone(configMaps, "owner")
		w.expectGone(secrets, "dependent")
	}},
	{name: "orphan changed to background deletes the dependents", run: func(w *world) {
		owner := w.create(configMaps, "owner")
		w.create(secrets, "dependent", ownedBy(reference(owner)), frozen("UPDATE"))
		w.delete(configMaps, "owner", orphan)
		w.expectWaiting(configMaps, "owner")
		w.delete(configMaps, "owner", background)
		w.awaitGone(configMaps, "owner")
		w.awaitGone(secrets, "dependent")
	}},
	{name: "background changed to foreground deletes the dependents of a terminating owner", run: func(w *world) {
		owner := w.create(configMaps, "owner", finalizers(foreign))
		w.create(secrets, "dependent", ownedBy(reference(owner)))
		w.delete(configMaps, "owner", background)
		w.expectKept(secrets, "dependent")
		w.delete(configMaps, "owner", foreground)
		w.awaitGone(secrets, "dependent")
		w.awaitFinalizers(configMaps, "owner", foreign)
	}},
	{name: "background changed to orphan keeps the dependents of a terminating owner", run: func(w *world) {
		owner := w.create(configMaps, "owner", finalizers(foreign))
		w.create(secrets, "dependent", ownedBy(reference(owner)))
		w.delete(configMaps, "owner", background)
		w.delete(configMaps, "owner", orphan)
		w.awaitOwners(secrets, "dependent")
		w.awaitFinalizers(configMaps, "owner", foreign)
		w.setFinalizers(configMaps, "owner")
		w.awaitGone(configMaps, "owner")
		w.expectKept(secrets, "dependent")
	}},
	{name: "removed finalizer foregroundDeletion ends the wait", run: func(w *world) {
		owner := w.create(configMaps, "owner")
		w.create(secrets, "dependent", ownedBy(reference(owner)), frozen("DELETE"))
		w.delete(configMaps, "owner", foreground)
		w.expectWaiting(configMaps, "owner")
		w.setFinalizers(configMaps, "owner")
		w.awaitGone(configMaps, "owner")
		w.thaw(secrets, "dependent")
		w.awaitGone(secrets, "dependent")
	}},
	{name: "removed finalizer orphan has the dependents deleted", run: func(w *world) {
		owner := w.create(configMaps, "owner")
		w.create(secrets, "dependent", ownedBy(reference(owner)), frozen("UPDATE"))
		w.delete(configMaps, "owner", orphan)
		w.expectWaiting(configMaps, "owner")
		w.setFinalizers(configMaps, "owner")
		w.awaitGone(configMaps, "owner")
		w.awaitGone(secrets, "dependent")
	}},
	{name: "foreground changed to orphan and back deletes the dependents first", run: func(w *world) {
		owner := w.create(configMaps, "owner")
		w.create(secrets, "dependent", ownedBy(reference(owner)), frozen("ALL"), finalizers(foreign))
		for _, policy := range []metav1.DeletionPropagation{foreground, orphan, foreground} {
			w.delete(configMaps, "owner", policy)
			w.expectWaiting(configMaps, "owner")
		}
		w.setFrozen(secrets, "dependent", "UPDATE")
		w.awaitDeleted(secrets, "dependent")
		w.expectWaiting(configMaps, "owner")
		w.setFinalizers(secrets, "dependent")
		w.awaitGone(configMaps, "owner")
	}},
}
