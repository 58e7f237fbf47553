package garbage

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	background = metav1.DeletePropagationBackground
	foreground = metav1.DeletePropagationForeground
	orphan     = metav1.DeletePropagationOrphan
	foreign    = "e2e.exeunt.io/foreign"
)

// scenarios hold for both sides, except those with a difference.
var scenarios = map[string]struct {
	run func(*world)
	// difference is why upstream's controller does not pass; empty if it does.
	difference string
}{
	"background deletion": {run: func(w *world) {
		owner := w.create(configMaps, "owner")
		w.create(secrets, "dependent", ownedBy(reference(owner)))
		w.delete(configMaps, "owner", background)
		w.awaitGone(secrets, "dependent")
	}},
	"foreground deletion": {run: func(w *world) {
		owner := w.create(configMaps, "owner")
		w.create(secrets, "dependent", ownedBy(reference(owner)))
		w.create(secrets, "unblocking", ownedBy(unblocking(reference(owner))))
		w.delete(configMaps, "owner", foreground)
		w.awaitGone(configMaps, "owner")
		w.expectGone(secrets, "dependent")
		w.awaitGone(secrets, "unblocking")
	}},
	"foreground deletion waits for a foreign finalizer": {run: func(w *world) {
		owner := w.create(configMaps, "owner")
		w.create(secrets, "dependent", ownedBy(reference(owner)), finalizers(foreign))
		w.delete(configMaps, "owner", foreground)
		w.awaitDeleted(secrets, "dependent")
		if w.get(configMaps, "owner") == nil {
			w.t.Error("the owner is gone before its dependent")
		}
		w.setFinalizers(secrets, "dependent")
		w.awaitGone(configMaps, "owner")
	}},
	"foreground deletion of three generations": {run: func(w *world) {
		owner := w.create(configMaps, "owner")
		child := w.create(secrets, "child", ownedBy(reference(owner)))
		w.create(serviceAccounts, "grandchild", ownedBy(reference(child)), finalizers(foreign))
		w.delete(configMaps, "owner", foreground)
		w.awaitDeleted(serviceAccounts, "grandchild")
		if w.get(secrets, "child") == nil || w.get(configMaps, "owner") == nil {
			w.t.Error("owners are gone before the grandchild")
		}
		w.setFinalizers(serviceAccounts, "grandchild")
		w.awaitGone(configMaps, "owner")
		w.expectGone(secrets, "child")
	}},
	"orphaning": {run: func(w *world) {
		owner := w.create(configMaps, "owner")
		w.create(secrets, "dependent", ownedBy(reference(owner)))
		w.create(secrets, "unblocking", ownedBy(unblocking(reference(owner))))
		w.delete(configMaps, "owner", orphan)
		w.awaitGone(configMaps, "owner")
		w.awaitOwners(secrets, "dependent")
		w.awaitOwners(secrets, "unblocking")
		w.expectKept(secrets, "dependent")
	}},
	"two owners, one deleted in the background": {run: func(w *world) {
		first, second := w.create(configMaps, "first"), w.create(configMaps, "second")
		w.create(secrets, "dependent", ownedBy(reference(first), reference(second)))
		w.delete(configMaps, "first", background)
		w.awaitOwners(secrets, "dependent", "second")
		w.expectKept(secrets, "dependent")
		w.delete(configMaps, "second", background)
		w.awaitGone(secrets, "dependent")
	}},
	"two owners, one deleted in the foreground": {run: func(w *world) {
		first, second := w.create(configMaps, "first"), w.create(configMaps, "second")
		w.create(secrets, "dependent", ownedBy(reference(first), reference(second)))
		w.delete(configMaps, "second", foreground)
		w.awaitGone(configMaps, "second")
		w.awaitOwners(secrets, "dependent", "first")
		w.expectKept(secrets, "dependent")
	}},
	"absent owner": {run: func(w *world) {
		w.create(secrets, "dependent", w.absentOwner())
		w.awaitGone(secrets, "dependent")
	}},
	"25 absent owners": {run: func(w *world) {
		var owners []metav1.OwnerReference
		for i := range 25 {
			owners = append(owners, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "absent", UID: uid(i)})
		}
		w.create(secrets, "dependent", ownedBy(owners...))
		w.awaitGone(secrets, "dependent")
	}},
	"owner in another namespace": {run: func(w *world) {
		other := w.newNamespace()
		owner := w.create(configMaps, "owner", inNamespace(other))
		w.create(secrets, "dependent", ownedBy(reference(owner)))
		w.awaitGone(secrets, "dependent")
		w.await("there is an event about the namespace", func() bool {
			events, err := w.typed.CoreV1().Events(w.namespace).List(w.ctx, metav1.ListOptions{FieldSelector: "reason=OwnerRefInvalidNamespace"})
			must(w.t, err, "list events")
			return len(events.Items) > 0 && strings.Contains(events.Items[0].Message, fmt.Sprintf("does not exist in namespace %q", w.namespace))
		})
	}},
	"cluster-scoped dependent of a namespaced owner": {run: func(w *world) {
		owner := w.create(configMaps, "owner")
		w.create(classes, "dependent", ownedBy(reference(owner)))
		w.delete(configMaps, "owner", background)
		w.expectKept(classes, "dependent")
	}},
	"namespaced dependent of a cluster-scoped owner": {run: func(w *world) {
		owner := w.create(classes, "owner")
		w.create(secrets, "dependent", ownedBy(reference(owner)))
		w.delete(classes, "owner", foreground)
		w.awaitGone(classes, "owner")
		w.expectGone(secrets, "dependent")
	}},
	"owner of a kind that nobody serves": {run: func(w *world) {
		w.create(secrets, "dependent", ownedBy(metav1.OwnerReference{APIVersion: "e2e.exeunt.io/v1", Kind: "Unknown", Name: "owner", UID: uid(1)}))
		w.expectKept(secrets, "dependent")
	}},
	"owner under a version that nobody serves": {difference: "stock resolves no reference whose version is not served, and retries for ever", run: func(w *world) {
		owner := w.create(widgets, "owner")
		r := reference(owner)
		r.APIVersion = "e2e.exeunt.io/v0"
		w.create(secrets, "dependent", ownedBy(r))
		w.delete(widgets, "owner", background)
		w.awaitGone(secrets, "dependent")
	}},
	"reference to another name": {run: func(w *world) {
		r := reference(w.create(configMaps, "owner"))
		r.Name = "other"
		w.create(secrets, "dependent", ownedBy(r))
		w.awaitGone(secrets, "dependent")
	}},
	"reference to another kind": {run: func(w *world) {
		r := reference(w.create(configMaps, "owner"))
		r.Kind = "ServiceAccount"
		w.create(secrets, "dependent", ownedBy(r))
		w.awaitGone(secrets, "dependent")
	}},
	"owner created again under its name": {run: func(w *world) {
		r := reference(w.create(configMaps, "owner"))
		w.create(secrets, "dependent", ownedBy(r))
		w.delete(configMaps, "owner", background)
		w.create(configMaps, "owner")
		w.awaitGone(secrets, "dependent")
		w.expectKept(configMaps, "owner")
	}},
	"custom owner of a core dependent": {run: func(w *world) {
		owner := w.create(widgets, "owner")
		w.create(secrets, "dependent", ownedBy(reference(owner)))
		w.delete(widgets, "owner", foreground)
		w.awaitGone(widgets, "owner")
		w.expectGone(secrets, "dependent")
	}},
	"core owner of a custom dependent": {run: func(w *world) {
		owner := w.create(configMaps, "owner")
		w.create(widgets, "dependent", ownedBy(reference(owner)))
		w.delete(configMaps, "owner", foreground)
		w.awaitGone(configMaps, "owner")
		w.expectGone(widgets, "dependent")
	}},
	"finalizer orphan on the dependent": {run: func(w *world) {
		owner := w.create(configMaps, "owner")
		child := w.create(secrets, "child", ownedBy(reference(owner)), finalizers("orphan"))
		w.create(serviceAccounts, "grandchild", ownedBy(reference(child)))
		w.delete(configMaps, "owner", background)
		w.awaitGone(secrets, "child")
		w.awaitOwners(serviceAccounts, "grandchild")
		w.expectKept(serviceAccounts, "grandchild")
	}},
	"foreground changed to orphan": {run: func(w *world) {
		owner := w.create(configMaps, "owner")
		w.create(secrets, "dependent", ownedBy(reference(owner)), finalizers(foreign))
		w.delete(configMaps, "owner", foreground)
		w.awaitDeleted(secrets, "dependent")
		w.delete(configMaps, "owner", orphan)
		w.awaitGone(configMaps, "owner")
		w.awaitOwners(secrets, "dependent")
	}},
	"self-reference":                       {run: cycle(1, false), difference: "stock waits for the owner itself for ever"},
	"cycle of 2":                           {run: cycle(2, false)},
	"cycle of 3":                           {run: cycle(3, false), difference: "stock finds no cycle of more than two owners"},
	"cycle of 5":                           {run: cycle(5, false), difference: "stock finds no cycle of more than two owners"},
	"cycle of 2, each deleted by the user": {run: cycle(2, true), difference: "stock breaks a cycle only before it deletes a member itself"},
	"cycle of 2 with a blocker outside": {run: func(w *world) {
		w.ring(2)
		w.create(serviceAccounts, "outside", ownedBy(reference(w.get(secrets, "member-0"))), finalizers(foreign))
		w.delete(secrets, "member-0", foreground)
		w.awaitDeleted(serviceAccounts, "outside")
		w.create(configMaps, "fence", w.absentOwner())
		w.awaitGone(configMaps, "fence")
		if w.get(secrets, "member-0") == nil {
			w.t.Error("the member is gone before its dependent outside of the cycle")
		}
		w.setFinalizers(serviceAccounts, "outside")
		w.awaitGone(secrets, "member-0")
		w.awaitGone(secrets, "member-1")
	}},
}

// ring creates owners that own each other in a ring.
func (w *world) ring(length int) {
	w.t.Helper()
	for i := range length {
		w.create(secrets, fmt.Sprint("member-", i))
	}
	for i := range length {
		w.own(secrets, fmt.Sprint("member-", i), reference(w.get(secrets, fmt.Sprint("member-", (i+1)%length))))
	}
}

// cycle deletes one member of a ring in the foreground, or all.
func cycle(length int, all bool) func(*world) {
	return func(w *world) {
		w.ring(length)
		if all { // a foreign finalizer keeps the collector from being faster than the user
			for i := range length {
				w.setFinalizers(secrets, fmt.Sprint("member-", i), foreign)
			}
			for i := range length {
				w.delete(secrets, fmt.Sprint("member-", i), foreground)
			}
		} else {
			w.delete(secrets, "member-0", foreground)
		}
		for i := range length {
			if name := fmt.Sprint("member-", i); all {
				w.await(name+" is released", func() bool { return !contains(w.get(secrets, name).GetFinalizers(), metav1.FinalizerDeleteDependents) })
			} else {
				w.awaitGone(secrets, name)
			}
		}
	}
}

func TestScenarios(t *testing.T) {
	t.Parallel()
	runScenarios(t, ours)
}

func runScenarios(t *testing.T, which side) {
	r := start(t, which, false)
	t.Run("group", func(t *testing.T) {
		for name, scenario := range scenarios {
			if which == stock && scenario.difference != "" {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				scenario.run(r.world(t))
			})
		}
	})
}

// TestStockScenarios runs the same scenarios with upstream's controller, except for those that
// differ.
func TestStockScenarios(t *testing.T) {
	t.Parallel()
	runScenarios(t, stock)
}
