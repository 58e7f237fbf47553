package garbage

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	cycleHangs = "a cycle is broken only before a member is deleted by the collector itself"
	noCycle    = "an owner whose dependent's dependent is in the foreground is taken for a cycle"
)

// cycles are owners that own each other in a ring of configMaps: member-0 owns the last member.
var cycles = []scenario{
	{name: "a self-reference deleted in the foreground is released", about: designDocument, run: func(w *world) {
		w.ring(1)
		w.delete(configMaps, "member-0", foreground)
	}, stock: &difference{
		does: "the owner waits for ever", why: "the owner waits for itself",
		ours:  func(w *world) { w.awaitMembersGone(1) },
		stock: func(w *world) { w.expectWaiting(configMaps, "member-0") },
	}},
	{name: "a self-reference deleted in the background is gone", run: func(w *world) {
		w.ring(1)
		w.delete(configMaps, "member-0", background)
		w.expectGone(configMaps, "member-0")
	}},
	{name: "a self-reference deleted with orphan is gone", run: func(w *world) {
		w.ring(1)
		w.delete(configMaps, "member-0", orphan)
		w.awaitMembersGone(1)
	}},
	{name: "a self-reference and a dependent: the owner waits for the dependent only", run: func(w *world) {
		w.ring(1)
		w.create(secrets, "outside", ownedBy(reference(w.get(configMaps, "member-0"))), finalizers(foreign))
		w.delete(configMaps, "member-0", foreground)
		w.awaitDeleted(secrets, "outside")
		w.expectWaiting(configMaps, "member-0")
		w.setFinalizers(secrets, "outside")
		w.awaitGone(secrets, "outside")
	}, stock: &difference{
		does: "the owner waits for ever", why: "the owner waits for itself",
		ours:  func(w *world) { w.awaitMembersGone(1) },
		stock: func(w *world) { w.expectWaiting(configMaps, "member-0") },
	}},
	{name: "a cycle of 2, one deleted in the foreground", about: designDocument, run: ringDeleted(2, foreground)},
	{name: "a cycle of 3, one deleted in the foreground", about: designDocument, run: ringDeleted(3, foreground)},
	{name: "a cycle of 5, one deleted in the foreground", about: designDocument, run: ringDeleted(5, foreground)},
	{name: "a cycle of 2, one deleted in the background", run: ringDeleted(2, background)},
	{name: "a cycle of 5, one deleted in the background", run: ringDeleted(5, background)},
	{name: "a cycle of 3, one deleted with orphan: a chain stays", run: func(w *world) {
		w.ring(3)
		w.delete(configMaps, "member-0", orphan)
		w.awaitGone(configMaps, "member-0")
		w.awaitOwners(configMaps, "member-2")
		w.awaitOwners(configMaps, "member-1", "member-2")
		w.expectKept(configMaps, "member-1")
	}},
	{name: "a cycle of 2, each deleted by the user, is released", run: ringOfDeleted(2), stock: hangs(2)},
	{name: "a cycle of 3, each deleted by the user, is released", run: ringOfDeleted(3), stock: hangs(3)},
	{name: "a cycle of 5, each deleted by the user, is released", run: ringOfDeleted(5), stock: hangs(5)},
	{name: "a cycle whose references do not block", run: func(w *world) {
		w.create(configMaps, "first")
		w.create(configMaps, "second", ownedBy(unblocking(reference(w.get(configMaps, "first")))))
		w.own(configMaps, "first", notBlocking(reference(w.get(configMaps, "second"))))
		w.delete(configMaps, "first", foreground)
		w.awaitGone(configMaps, "first")
		w.awaitGone(configMaps, "second")
	}},
	{name: "a cycle of two kinds and scopes", run: func(w *world) {
		w.create(widgets, "first")
		w.create(secrets, "second", ownedBy(reference(w.get(widgets, "first"))))
		w.own(widgets, "first", reference(w.get(secrets, "second")))
		w.delete(widgets, "first", foreground)
		w.awaitGone(widgets, "first")
		w.awaitGone(secrets, "second")
	}},
	{name: "a cycle below an owner outlives it: its members own each other", run: func(w *world) {
		owner := w.create(secrets, "owner")
		w.ring(2)
		w.own(configMaps, "member-0", reference(w.get(configMaps, "member-1")), reference(owner))
		w.delete(secrets, "owner", foreground)
		w.awaitOwners(configMaps, "member-0", "member-1")
		w.awaitGone(secrets, "owner")
		w.expectKept(configMaps, "member-0")
	}},
	{name: "a cycle with a live owner outside: the deleted member goes, the other one stays", run: func(w *world) {
		live := w.create(secrets, "live")
		w.ring(2)
		w.own(configMaps, "member-0", reference(w.get(configMaps, "member-1")), reference(live))
		w.delete(configMaps, "member-1", foreground)
		w.awaitGone(configMaps, "member-1")
		w.awaitOwners(configMaps, "member-0", "live")
		w.expectKept(configMaps, "member-0")
	}},
	{name: "a cycle of 2 with a foreign finalizer on the deleted member: the other one is gone at once",
		run: func(w *world) {
			w.ring(2)
			w.setFinalizers(configMaps, "member-0", foreign)
			w.delete(configMaps, "member-0", foreground)
		}, stock: &difference{
			does: "the other one stays until the foreign finalizer is removed",
			why:  "upstream's controller makes the references of one member not block, garbage-collector releases all members",
			ours: func(w *world) {
				w.awaitGone(configMaps, "member-1")
				w.awaitFinalizers(configMaps, "member-0", foreign)
				w.setFinalizers(configMaps, "member-0")
				w.awaitMembersGone(2)
			},
			stock: func(w *world) {
				w.awaitFinalizers(configMaps, "member-0", foreign)
				w.settle()
				w.expectExists(configMaps, "member-1")
				w.setFinalizers(configMaps, "member-0")
				w.awaitMembersGone(2)
			},
		}},
	{name: "a cycle of 3 with a foreign finalizer on another member", run: func(w *world) {
		w.ring(3)
		w.setFinalizers(configMaps, "member-1", foreign)
		w.delete(configMaps, "member-0", foreground)
		w.awaitFinalizers(configMaps, "member-1", foreign)
		w.awaitDeleted(configMaps, "member-1")
		w.setFinalizers(configMaps, "member-1")
		w.awaitMembersGone(3)
	}},
	{name: "a cycle of 2 with a blocker outside waits for it", run: func(w *world) {
		w.ring(2)
		w.create(secrets, "outside", ownedBy(reference(w.get(configMaps, "member-0"))), finalizers(foreign))
		w.delete(configMaps, "member-0", foreground)
		w.awaitDeleted(secrets, "outside")
		w.expectWaiting(configMaps, "member-0")
		w.setFinalizers(secrets, "outside")
		w.awaitMembersGone(2)
	}},
	{name: "a cycle of 2 with a blocker of the other member waits for it", run: func(w *world) {
		w.ring(2)
		w.create(secrets, "outside", ownedBy(reference(w.get(configMaps, "member-1"))), finalizers(foreign))
		w.delete(configMaps, "member-0", foreground)
		w.awaitDeleted(secrets, "outside")
	}, stock: &difference{
		does: "the deleted member is gone before its dependents",
		why:  "the references of a cycle are made not to block although a member has a dependent outside",
		ours: func(w *world) {
			w.expectWaiting(configMaps, "member-0")
			w.expectWaiting(configMaps, "member-1")
			w.setFinalizers(secrets, "outside")
			w.awaitMembersGone(2)
		},
		stock: func(w *world) {
			w.awaitGone(configMaps, "member-0")
			w.expectExists(secrets, "outside")
		},
	}},
	{name: "two cycles with one member in common", run: func(w *world) {
		w.ring(3)
		w.create(configMaps, "other", ownedBy(reference(w.get(configMaps, "member-0"))))
		w.own(configMaps, "member-0", reference(w.get(configMaps, "member-1")), reference(w.get(configMaps, "other")))
		w.delete(configMaps, "member-0", foreground)
		w.awaitMembersGone(3)
		w.awaitGone(configMaps, "other")
	}},
	{name: "an owner deleted after its dependent is no cycle", about: designDocument, run: func(w *world) {
		owner := w.create(configMaps, "owner")
		child := w.create(secrets, "child", ownedBy(reference(owner)))
		w.create(serviceAccounts, "grandchild", ownedBy(reference(child)), finalizers(foreign))
		w.delete(secrets, "child", foreground)
		w.awaitDeleted(serviceAccounts, "grandchild")
		w.delete(configMaps, "owner", foreground)
		w.expectWaiting(configMaps, "owner")
		w.expectWaiting(secrets, "child")
		w.setFinalizers(serviceAccounts, "grandchild")
		w.awaitGone(configMaps, "owner")
		w.expectGone(secrets, "child")
	}},
	{name: "an owner deleted after its grandchild is no cycle", about: designDocument, run: func(w *world) {
		owner := w.create(configMaps, "owner")
		child := w.create(secrets, "child", ownedBy(reference(owner)))
		grandchild := w.create(serviceAccounts, "grandchild", ownedBy(reference(child)))
		w.create(widgets, "blocker", ownedBy(reference(grandchild)), finalizers(foreign))
		w.delete(serviceAccounts, "grandchild", foreground)
		w.awaitDeleted(widgets, "blocker")
		w.delete(configMaps, "owner", foreground)
	}, stock: &difference{
		does: "the owner is gone before its grandchild", why: noCycle,
		ours: func(w *world) {
			w.awaitDeleted(secrets, "child")
			w.expectWaiting(secrets, "child")
			w.expectWaiting(configMaps, "owner")
			w.setFinalizers(widgets, "blocker")
			w.awaitGone(configMaps, "owner")
			w.expectGone(secrets, "child")
		},
		stock: func(w *world) {
			w.awaitGone(configMaps, "owner")
			w.expectExists(serviceAccounts, "grandchild")
		},
	}},
}

func member(i int) string { return fmt.Sprint("member-", i) }

// ring creates owners that own each other in a ring: the next member owns each.
func (w *world) ring(length int) {
	w.t.Helper()
	for i := range length {
		w.create(configMaps, member(i))
	}
	w.close(length)
}

// close sets the references of a ring.
func (w *world) close(length int) {
	w.t.Helper()
	for i := range length {
		w.own(configMaps, member(i), reference(w.get(configMaps, member((i+1)%length))))
	}
}

func (w *world) awaitMembersGone(length int) {
	w.t.Helper()
	for i := range length {
		w.awaitGone(configMaps, member(i))
	}
}

// ringDeleted deletes one member of a ring.
func ringDeleted(length int, policy metav1.DeletionPropagation) func(*world) {
	return func(w *world) {
		w.ring(length)
		w.delete(configMaps, member(0), policy)
		w.awaitMembersGone(length)
	}
}

// ringOfDeleted deletes every member in the foreground before the references form a ring:
// a dependent of each keeps the collector from being faster.
func ringOfDeleted(length int) func(*world) {
	return func(w *world) {
		for i := range length {
			owner := w.create(configMaps, member(i))
			w.create(secrets, member(i), ownedBy(reference(owner)), finalizers(foreign))
			w.delete(configMaps, member(i), foreground)
		}
		w.close(length)
		for i := range length {
			w.awaitDeleted(secrets, member(i))
			w.setFinalizers(secrets, member(i))
			w.awaitGone(secrets, member(i))
		}
	}
}

// hangs is the difference of a ring whose members the user deleted.
func hangs(length int) *difference {
	return &difference{
		does: "all members wait for ever", why: cycleHangs,
		ours: func(w *world) { w.awaitMembersGone(length) },
		stock: func(w *world) {
			for i := range length {
				w.expectWaiting(configMaps, member(i))
			}
		},
	}
}
