package garbage

import (
	"net/http"
)

const (
	noBarrier = "the graph is taken for complete, although a watch may be late"
	goneNodes = "the nodes of a kind that is served no longer stay in the graph (kubernetes#142039)"
)

// watches are scenarios whose collector sees objects of one kind late, or never.
var watches = []scenario{
	{name: "an owner outlives dependents that the watch has not delivered", about: designDocument + ", unhandled cases",
		run: func(w *world) {
			late := w.lateKind()
			owner := w.create(configMaps, "owner")
			w.create(late, "dependent", ownedBy(reference(owner)))
			w.delete(configMaps, "owner", foreground)
			w.awaitGone(configMaps, "owner")
		}, stock: &difference{
			does: "the owner is gone before its dependents", why: noBarrier,
			ours:  func(w *world) { w.expectGone(w.late, "dependent") },
			stock: func(w *world) { w.expectExists(w.late, "dependent") },
		}},
	{name: "an owner outlives grandchildren that the watch has not delivered", run: func(w *world) {
		late := w.lateKind()
		owner := w.create(configMaps, "owner")
		child := w.create(secrets, "child", ownedBy(reference(owner)))
		w.settle()
		w.create(late, "grandchild", ownedBy(reference(child)))
		w.delete(configMaps, "owner", foreground)
		w.awaitGone(configMaps, "owner")
		w.expectGone(secrets, "child")
	}, stock: &difference{
		does: "the owner is gone before its grandchildren", why: noBarrier,
		ours:  func(w *world) { w.expectGone(w.late, "grandchild") },
		stock: func(w *world) { w.expectExists(w.late, "grandchild") },
	}},
	{name: "a cluster-scoped owner outlives dependents that the watch has not delivered", run: func(w *world) {
		late := w.lateKind()
		owner := w.create(fleets, "owner")
		w.create(late, "dependent", ownedBy(reference(owner)))
		w.delete(fleets, "owner", foreground)
		w.awaitGone(fleets, "owner")
	}, stock: &difference{
		does: "the owner is gone before its dependents", why: noBarrier,
		ours:  func(w *world) { w.expectGone(w.late, "dependent") },
		stock: func(w *world) { w.expectExists(w.late, "dependent") },
	}},
	{name: "orphans that the watch has not delivered stay", about: "kubernetes#26120", run: func(w *world) {
		late := w.lateKind()
		owner := w.create(configMaps, "owner")
		w.create(late, "dependent", ownedBy(reference(owner)))
		w.delete(configMaps, "owner", orphan)
		w.awaitGone(configMaps, "owner")
		w.gate.release(late.Resource)
	}, stock: &difference{
		does: "they are deleted", why: noBarrier,
		ours: func(w *world) {
			w.awaitOwners(w.late, "dependent")
			w.expectKept(w.late, "dependent")
		},
		stock: func(w *world) { w.awaitGone(w.late, "dependent") },
	}},
	{name: "a dependent with a new owner that the watch has not delivered stays", about: "kubernetes#114603",
		run: func(w *world) {
			late := w.lateKindLater()
			first, second := w.create(configMaps, "first"), w.create(configMaps, "second")
			w.create(late, "dependent", ownedBy(reference(first)))
			w.settleKind(late)
			w.gate.hold(late.Resource)
			w.own(late, "dependent", reference(first), reference(second))
			w.delete(configMaps, "first", background)
			w.expectKept(late, "dependent")
			w.gate.release(late.Resource)
			w.awaitOwners(late, "dependent", "second")
		}},
	{name: "an owner that the watch has not delivered keeps its dependents", about: "kubernetes#88097",
		run: func(w *world) {
			late := w.lateKind()
			owner := w.create(late, "owner")
			w.create(secrets, "dependent", ownedBy(reference(owner)))
			w.expectKept(secrets, "dependent")
		}},
	{name: "an owner deleted in the background before the watch has delivered it", run: func(w *world) {
		late := w.lateKind()
		owner := w.create(late, "owner")
		w.create(secrets, "dependent", ownedBy(reference(owner)))
		w.expectKept(secrets, "dependent")
		w.delete(late, "owner", background)
		w.settle()
		w.gate.release(late.Resource)
		w.awaitGone(secrets, "dependent")
	}},
	{name: "a foreground deletion that the watch has not delivered ends later", about: "kubernetes#115570",
		run: func(w *world) {
			late := w.lateKind()
			owner := w.create(late, "owner")
			w.create(secrets, "dependent", ownedBy(reference(owner)))
			w.delete(late, "owner", foreground)
			w.annotate(late, "owner", "changed")
			w.settle()
			w.gate.release(late.Resource)
			w.awaitGone(late, "owner")
			w.expectGone(secrets, "dependent")
		}},
	{name: "a foreground deletion whose event is lost with the watch ends later", about: "kubernetes#115570",
		run: func(w *world) {
			late := w.lateKindLater()
			owner := w.create(late, "owner")
			w.create(secrets, "dependent", ownedBy(reference(owner)))
			w.settleKind(late)
			w.gate.hold(late.Resource)
			w.delete(late, "owner", foreground)
			w.annotate(late, "owner", "changed")
			expired := w.gate.answer(http.MethodGet, "/apis/e2e.exeunt.io/v1/"+late.Resource, http.StatusGone)
			w.gate.cut(late.Resource)
			w.awaitReached(expired)
			expired.open()
			w.awaitGone(late, "owner")
			w.expectGone(secrets, "dependent")
		}},
	{name: "a dependent whose deletion the watch has not delivered blocks until then at most", run: func(w *world) {
		late := w.lateKindLater()
		owner := w.create(configMaps, "owner")
		w.create(late, "dependent", ownedBy(reference(owner)), finalizers(foreign))
		w.delete(configMaps, "owner", foreground)
		w.awaitDeleted(late, "dependent")
		w.settleKind(late)
		w.gate.hold(late.Resource)
		w.setFinalizers(late, "dependent")
		w.awaitGone(late, "dependent")
		w.gate.release(late.Resource)
		w.awaitGone(configMaps, "owner")
	}},
}

// requests are scenarios with requests that are held, or answered by the proxy.
var requests = []scenario{
	{name: "references that change before the deletion arrives keep the dependent", about: "kubernetes#114603",
		run: func(w *world) {
			first, second := w.create(configMaps, "first"), w.create(configMaps, "second")
			w.create(secrets, "dependent", ownedBy(reference(first)))
			held := w.gate.stop(http.MethodDelete, w.path(secrets, "dependent"))
			w.delete(configMaps, "first", background)
			w.awaitReached(held)
			w.own(secrets, "dependent", reference(second))
			held.open()
			w.expectKept(secrets, "dependent")
			w.awaitOwners(secrets, "dependent", "second")
		}},
	{name: "an annotation that changes before the deletion arrives does not keep the dependent", run: func(w *world) {
		w.create(secrets, "dependent", ownedBy(reference(w.create(configMaps, "owner"))))
		held := w.gate.stop(http.MethodDelete, w.path(secrets, "dependent"))
		w.delete(configMaps, "owner", background)
		w.awaitReached(held)
		w.annotate(secrets, "dependent", "changed")
		held.open()
		w.awaitGone(secrets, "dependent")
	}},
	{name: "a dependent created again before the deletion arrives stays", run: func(w *world) {
		first, second := w.create(configMaps, "first"), w.create(configMaps, "second")
		w.create(secrets, "dependent", ownedBy(reference(first)))
		held := w.gate.stop(http.MethodDelete, w.path(secrets, "dependent"))
		w.delete(configMaps, "first", background)
		w.awaitReached(held)
		w.delete(secrets, "dependent", background)
		w.create(secrets, "dependent", ownedBy(reference(second)))
		held.open()
		w.expectKept(secrets, "dependent")
	}},
	{name: "a path that is not served is no absence", run: func(w *world) {
		late := w.lateKind()
		owner := w.create(late, "owner")
		w.gate.answer(http.MethodGet, w.path(late, "owner"), http.StatusNotFound)
		w.create(secrets, "dependent", ownedBy(reference(owner)))
	}, stock: &difference{
		does: "the dependent of a live owner is deleted", why: "a 404 of a path is taken for the absence of the owner",
		ours: func(w *world) { w.expectKept(secrets, "dependent") },
		stock: func(w *world) {
			w.awaitGone(secrets, "dependent")
			w.expectExists(w.late, "owner")
		},
	}},
	{name: "an owner that cannot be read keeps its dependents", run: func(w *world) {
		late := w.lateKind()
		owner := w.create(late, "owner")
		w.gate.answer(http.MethodGet, w.path(late, "owner"), http.StatusInternalServerError)
		w.create(secrets, "dependent", ownedBy(reference(owner)))
		w.expectKept(secrets, "dependent")
	}},
	{name: "an owner that the collector may not read keeps its dependents", run: func(w *world) {
		late := w.lateKind()
		owner := w.create(late, "owner")
		w.gate.answer(http.MethodGet, w.path(late, "owner"), http.StatusForbidden)
		w.create(secrets, "dependent", ownedBy(reference(owner)))
		w.expectKept(secrets, "dependent")
	}},
	{name: "an owner that cannot be read does not keep another owner waiting", run: func(w *world) {
		late := w.lateKind()
		live, owner, unread := w.create(serviceAccounts, "live"), w.create(configMaps, "owner"), w.create(late, "unread")
		w.gate.answer(http.MethodGet, w.path(late, "unread"), http.StatusInternalServerError)
		w.create(secrets, "dependent", ownedBy(reference(unread), reference(live), reference(owner)))
		w.delete(configMaps, "owner", foreground)
	}, stock: &difference{
		does: "the other owner waits until it can be read", why: allOrNothing,
		ours: func(w *world) {
			w.awaitGone(configMaps, "owner")
			w.awaitOwners(secrets, "dependent", "unread", "live")
		},
		stock: func(w *world) { w.expectWaiting(configMaps, "owner") },
	}},
	{name: "a policy changed to orphan does not take back a deletion under way", run: func(w *world) {
		owner := w.create(configMaps, "owner")
		w.create(secrets, "dependent", ownedBy(reference(owner)))
		held := w.gate.stop(http.MethodDelete, w.path(secrets, "dependent"))
		w.delete(configMaps, "owner", foreground)
		w.awaitReached(held)
		patch := w.gate.stop(http.MethodPatch, w.path(secrets, "dependent"))
		w.delete(configMaps, "owner", orphan)
		held.open()
		w.awaitGone(secrets, "dependent")
		patch.open()
		w.awaitGone(configMaps, "owner")
	}},
}

// removals are definitions that go while their objects are owners or dependents.
var removals = []scenario{
	{name: "a definition deleted while its objects block releases the owner", run: func(w *world) {
		late := w.lateKindLater()
		owner := w.create(configMaps, "owner")
		w.create(late, "dependent", ownedBy(reference(owner)), finalizers(foreign))
		w.delete(configMaps, "owner", foreground)
		w.awaitDeleted(late, "dependent")
		w.undefine(late)
		w.expectWaiting(configMaps, "owner")
		w.setFinalizers(late, "dependent")
		w.awaitGone(configMaps, "owner")
	}},
	{name: "a definition deleted has the dependents of its objects deleted", run: func(w *world) {
		late := w.lateKindLater()
		owner := w.create(late, "owner")
		w.create(secrets, "dependent", ownedBy(reference(owner)))
		w.undefine(late)
		w.awaitGone(secrets, "dependent")
	}},
	{name: "a definition that goes before the watch delivers its objects' end releases the owner",
		about: "kubernetes#142039", run: func(w *world) {
			late := w.lateKindLater()
			owner := w.create(configMaps, "owner")
			w.create(late, "dependent", ownedBy(reference(owner)), finalizers(foreign))
			w.delete(configMaps, "owner", foreground)
			w.awaitDeleted(late, "dependent")
			w.settleKind(late)
			w.gate.hold(late.Resource)
			w.setFinalizers(late, "dependent")
			w.undefine(late)
			w.awaitUndefined(late)
		}, stock: &difference{
			does: "the owner waits for ever", why: goneNodes,
			ours: func(w *world) { w.awaitGone(configMaps, "owner") },
			stock: func(w *world) {
				w.await("the collector knows that the kind is gone", func() bool { return w.dropped(w.late) })
				w.expectWaiting(configMaps, "owner")
			},
		}},
}
