package garbage

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	background = metav1.DeletePropagationBackground
	foreground = metav1.DeletePropagationForeground
	orphan     = metav1.DeletePropagationOrphan
	foreign    = "e2e.exeunt.io/foreign"
	// designDocument is the proposal "Synchronous Garbage Collection".
	designDocument = "design document"
)

var policies = []scenario{
	{name: "background deletion deletes the dependents", about: designDocument, run: func(w *world) {
		owner := w.create(configMaps, "owner")
		w.create(secrets, "dependent", ownedBy(reference(owner)))
		w.create(secrets, "unblocking", ownedBy(unblocking(reference(owner))))
		w.delete(configMaps, "owner", background)
		w.expectGone(configMaps, "owner")
		w.awaitGone(secrets, "dependent")
		w.awaitGone(secrets, "unblocking")
	}},
	{name: "deletion without policy deletes the dependents", about: designDocument, run: func(w *world) {
		owner := w.create(configMaps, "owner")
		w.create(secrets, "dependent", ownedBy(reference(owner)))
		w.deleteWith(configMaps, "owner", metav1.DeleteOptions{})
		w.awaitGone(secrets, "dependent")
	}},
	{name: "orphanDependents true keeps the dependents", about: designDocument, run: func(w *world) {
		owner := w.create(configMaps, "owner")
		w.create(secrets, "dependent", ownedBy(reference(owner)))
		w.deleteWith(configMaps, "owner", w.orphanDependents(true))
		w.awaitGone(configMaps, "owner")
		w.awaitOwners(secrets, "dependent")
		w.expectKept(secrets, "dependent")
	}},
	{name: "orphanDependents false deletes the dependents", about: designDocument, run: func(w *world) {
		owner := w.create(configMaps, "owner")
		w.create(secrets, "dependent", ownedBy(reference(owner)))
		w.deleteWith(configMaps, "owner", w.orphanDependents(false))
		w.awaitGone(secrets, "dependent")
	}},
	{name: "foreground deletion waits for blocking dependents only", about: designDocument, run: func(w *world) {
		owner := w.create(configMaps, "owner")
		w.create(secrets, "dependent", ownedBy(reference(owner)))
		w.create(secrets, "unblocking", ownedBy(unblocking(reference(owner))), finalizers(foreign))
		w.create(secrets, "not-blocking", ownedBy(notBlocking(reference(owner))), finalizers(foreign))
		w.delete(configMaps, "owner", foreground)
		w.awaitGone(configMaps, "owner")
		w.expectGone(secrets, "dependent")
		w.awaitDeleted(secrets, "unblocking")
		w.awaitDeleted(secrets, "not-blocking")
	}},
	{name: "foreground deletion deletes dependents that do not block", about: "kubernetes#121113", run: func(w *world) {
		owner, other := w.create(configMaps, "owner"), w.create(configMaps, "other")
		w.create(secrets, "blocker", ownedBy(reference(owner)), finalizers(foreign))
		w.create(secrets, "unblocking", ownedBy(unblocking(reference(owner))))
		w.create(secrets, "shared", ownedBy(unblocking(reference(owner)), reference(other)))
		w.delete(configMaps, "owner", foreground)
		w.awaitDeleted(secrets, "blocker")
		w.awaitGone(secrets, "unblocking")
		w.awaitOwners(secrets, "shared", "other")
		w.expectWaiting(configMaps, "owner")
	}},
	{name: "foreground deletion waits for a foreign finalizer", about: designDocument, run: func(w *world) {
		owner := w.create(configMaps, "owner")
		w.create(secrets, "dependent", ownedBy(reference(owner)), finalizers(foreign))
		w.delete(configMaps, "owner", foreground)
		w.awaitDeleted(secrets, "dependent")
		w.expectWaiting(configMaps, "owner")
		w.setFinalizers(secrets, "dependent")
		w.awaitGone(configMaps, "owner")
	}},
	{name: "foreground deletion waits for a namespace", about: designDocument, run: func(w *world) {
		owner := w.create(classes, "owner")
		w.create(namespaces, "dependent", ownedBy(reference(owner)))
		w.delete(classes, "owner", foreground)
		w.awaitDeleted(namespaces, "dependent")
		w.expectWaiting(classes, "owner")
		w.finalize("dependent")
		w.awaitGone(classes, "owner")
		w.expectGone(namespaces, "dependent")
	}},
	{name: "foreground deletion of three generations ends with the owner", about: designDocument, run: func(w *world) {
		owner := w.create(configMaps, "owner")
		child := w.create(secrets, "child", ownedBy(reference(owner)))
		w.create(serviceAccounts, "grandchild", ownedBy(reference(child)), finalizers(foreign))
		w.delete(configMaps, "owner", foreground)
		w.awaitDeleted(serviceAccounts, "grandchild")
		w.expectWaiting(secrets, "child")
		w.expectWaiting(configMaps, "owner")
		w.setFinalizers(serviceAccounts, "grandchild")
		w.awaitGone(configMaps, "owner")
		w.expectGone(secrets, "child")
	}},
	{name: "foreground deletion ends without dependents", about: designDocument, run: func(w *world) {
		w.create(configMaps, "owner")
		w.delete(configMaps, "owner", foreground)
		w.awaitGone(configMaps, "owner")
	}},
	{name: "foreground deletion deletes dependents created meanwhile at once, and waits for them", about: designDocument,
		run: func(w *world) {
			owner := w.create(configMaps, "owner")
			w.create(secrets, "first", ownedBy(reference(owner)), finalizers(foreign))
			w.delete(configMaps, "owner", foreground)
			w.awaitDeleted(secrets, "first")
			w.settle()
			w.create(secrets, "second", ownedBy(reference(owner)), finalizers(foreign))
		}, stock: &difference{
			does: "they are deleted when an earlier dependent is gone", why: "a new dependent of a waiting owner is not judged",
			ours: func(w *world) {
				w.awaitDeleted(secrets, "second")
				w.setFinalizers(secrets, "first")
				w.awaitGone(secrets, "first")
				w.expectWaiting(configMaps, "owner")
				w.setFinalizers(secrets, "second")
				w.awaitGone(configMaps, "owner")
			},
			stock: func(w *world) {
				w.expectKept(secrets, "second")
				w.setFinalizers(secrets, "first")
				w.awaitDeleted(secrets, "second")
				w.expectWaiting(configMaps, "owner")
				w.setFinalizers(secrets, "second")
				w.awaitGone(configMaps, "owner")
			},
		}},
	{name: "foreground deletion ends when the dependents drop their references", about: designDocument,
		run: func(w *world) {
			owner := w.create(configMaps, "owner")
			w.create(secrets, "dependent", ownedBy(reference(owner)), frozen("DELETE"))
			w.delete(configMaps, "owner", foreground)
			w.expectWaiting(configMaps, "owner")
			w.own(secrets, "dependent")
			w.awaitGone(configMaps, "owner")
			w.thaw(secrets, "dependent")
			w.expectKept(secrets, "dependent")
		}},
	{name: "foreground deletion does not wait for observedGeneration", about: designDocument + ", requeues instead",
		run: func(w *world) {
			owner := w.create(deployments, "owner", withTemplate)
			w.create(replicaSets, "dependent", ownedBy(reference(owner)), withTemplate)
			w.delete(deployments, "owner", foreground)
			w.awaitGone(deployments, "owner")
			w.expectGone(replicaSets, "dependent")
		}},
	{name: "foreground deletion of an owner with a foreign finalizer deletes the dependents", about: "kubernetes#77081",
		run: func(w *world) {
			owner := w.create(configMaps, "owner", finalizers(foreign))
			w.create(secrets, "dependent", ownedBy(reference(owner)))
			for range 3 {
				w.delete(configMaps, "owner", foreground)
				w.awaitFinalizers(configMaps, "owner", foreign)
			}
			w.expectGone(secrets, "dependent")
			w.setFinalizers(configMaps, "owner")
			w.awaitGone(configMaps, "owner")
		}},
	{name: "foreground deletion repeated after its end ends again", about: "kubernetes#77081", run: func(w *world) {
		w.create(configMaps, "owner", finalizers(foreign))
		w.delete(configMaps, "owner", foreground)
		w.awaitFinalizers(configMaps, "owner", foreign)
		w.delete(configMaps, "owner", foreground)
		w.awaitFinalizers(configMaps, "owner", foreign)
		w.setFinalizers(configMaps, "owner")
		w.awaitGone(configMaps, "owner")
	}},
	{name: "orphaning removes the references", about: designDocument, run: func(w *world) {
		owner := w.create(configMaps, "owner")
		w.create(secrets, "dependent", ownedBy(reference(owner)))
		w.create(secrets, "unblocking", ownedBy(unblocking(reference(owner))))
		w.delete(configMaps, "owner", orphan)
		w.awaitGone(configMaps, "owner")
		w.awaitOwners(secrets, "dependent")
		w.awaitOwners(secrets, "unblocking")
		w.expectKept(secrets, "dependent")
	}},
	{name: "orphaning removes the reference of a dependent that is being deleted", run: func(w *world) {
		owner := w.create(configMaps, "owner")
		w.create(secrets, "dependent", ownedBy(reference(owner)), finalizers(foreign))
		w.delete(secrets, "dependent", background)
		w.delete(configMaps, "owner", orphan)
		w.awaitGone(configMaps, "owner")
		w.awaitOwners(secrets, "dependent")
	}},
	{name: "orphaning keeps grandchildren owned", run: func(w *world) {
		owner := w.create(configMaps, "owner")
		child := w.create(secrets, "child", ownedBy(reference(owner)))
		w.create(serviceAccounts, "grandchild", ownedBy(reference(child)))
		w.delete(configMaps, "owner", orphan)
		w.awaitGone(configMaps, "owner")
		w.awaitOwners(secrets, "child")
		w.awaitOwners(serviceAccounts, "grandchild", "child")
		w.delete(secrets, "child", background)
		w.awaitGone(serviceAccounts, "grandchild")
	}},
	{name: "finalizer orphan on the owner orphans the dependents", run: func(w *world) {
		owner := w.create(configMaps, "owner", finalizers(metav1.FinalizerOrphanDependents))
		w.create(secrets, "dependent", ownedBy(reference(owner)))
		w.deleteWith(configMaps, "owner", metav1.DeleteOptions{})
		w.awaitGone(configMaps, "owner")
		w.awaitOwners(secrets, "dependent")
	}},
	{name: "finalizer foregroundDeletion on the owner makes the deletion wait", run: func(w *world) {
		owner := w.create(configMaps, "owner", finalizers(metav1.FinalizerDeleteDependents))
		w.create(secrets, "dependent", ownedBy(reference(owner)), finalizers(foreign))
		w.deleteWith(configMaps, "owner", metav1.DeleteOptions{})
		w.awaitDeleted(secrets, "dependent")
		w.expectWaiting(configMaps, "owner")
		w.setFinalizers(secrets, "dependent")
		w.awaitGone(configMaps, "owner")
	}},
	{name: "finalizer orphan on the dependent keeps the grandchild", run: func(w *world) {
		owner := w.create(configMaps, "owner")
		child := w.create(secrets, "child", ownedBy(reference(owner)), finalizers(metav1.FinalizerOrphanDependents))
		w.create(serviceAccounts, "grandchild", ownedBy(reference(child)))
		w.delete(configMaps, "owner", background)
		w.awaitGone(secrets, "child")
		w.awaitOwners(serviceAccounts, "grandchild")
		w.expectKept(serviceAccounts, "grandchild")
	}},
	{name: "finalizer foregroundDeletion on the dependent makes its deletion wait", run: func(w *world) {
		owner := w.create(configMaps, "owner")
		child := w.create(secrets, "child", ownedBy(reference(owner)), finalizers(metav1.FinalizerDeleteDependents))
		w.create(serviceAccounts, "grandchild", ownedBy(reference(child)), finalizers(foreign))
		w.delete(configMaps, "owner", background)
		w.awaitDeleted(serviceAccounts, "grandchild")
		w.expectWaiting(secrets, "child")
		w.setFinalizers(serviceAccounts, "grandchild")
		w.awaitGone(secrets, "child")
	}},
	{name: "refused deletion of a dependent is retried", run: func(w *world) {
		owner := w.create(configMaps, "owner")
		w.create(secrets, "dependent", ownedBy(reference(owner)), frozen("DELETE"))
		w.delete(configMaps, "owner", foreground)
		w.expectWaiting(configMaps, "owner")
		w.thaw(secrets, "dependent")
		w.awaitGone(configMaps, "owner")
		w.expectGone(secrets, "dependent")
	}},
	{name: "refused orphaning of a dependent is retried", run: func(w *world) {
		owner := w.create(configMaps, "owner")
		w.create(secrets, "dependent", ownedBy(reference(owner)), frozen("UPDATE"))
		w.delete(configMaps, "owner", orphan)
		w.expectWaiting(configMaps, "owner")
		w.thaw(secrets, "dependent")
		w.awaitGone(configMaps, "owner")
		w.awaitOwners(secrets, "dependent")
	}},
}

// orphanDependents returns options with the field that older clients set.
func (w *world) orphanDependents(value bool) (options metav1.DeleteOptions) {
	w.t.Helper()
	must(w.t, json.Unmarshal(fmt.Appendf(nil, `{"orphanDependents": %v}`, value), &options), "decode options")
	return options
}
