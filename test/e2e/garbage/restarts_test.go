package garbage

import (
	"testing"
)

// phased is a scenario of three phases. Something happens to all scenarios between them.
type phased struct {
	scenario
	phases [3]func(*world)
}

// runPhases runs each phase of all scenarios in parallel, and what is to happen between.
func runPhases(t *testing.T, r *rig, all []phased, between ...func(*world)) {
	namespaces := make([]string, len(all))
	for phase, name := range []string{"first", "second", "last"} {
		if phase > 0 {
			between[phase-1](r.world(t))
		}
		passed := t.Run(name, func(t *testing.T) {
			for i, s := range all {
				if namespaces[i] == "" {
					namespaces[i] = r.world(t).namespace
				}
				t.Run(s.name, func(t *testing.T) {
					t.Parallel()
					s.phases[phase](r.worldIn(t, namespaces[i]))
				})
			}
		})
		if !passed {
			return
		}
	}
}

func TestRestarts(t *testing.T) {
	t.Parallel()
	runRestarts(t, ours)
}

func TestStockRestarts(t *testing.T) {
	t.Parallel()
	runRestarts(t, stock)
}

func runRestarts(t *testing.T, which side) {
	r := start(t, which, false)
	runPhases(t, r, restarts, func(w *world) { r.kill(w.t) }, func(w *world) { r.run(w.t) })
}

func TestUnreadableKinds(t *testing.T) {
	t.Parallel()
	runUnreadable(t, ours)
}

func TestStockUnreadableKinds(t *testing.T) {
	t.Parallel()
	runUnreadable(t, stock)
}

func runUnreadable(t *testing.T, which side) {
	r := startAtOnce(t, which, false)
	r.world(t).define(gears.name, gears.Resource)
	r.kill(t)
	r.run(t) // upstream's controller finds new kinds each 30 s only
	runPhases(t, r, unreadable, func(w *world) {
		r.convert(w, brokenConversion)
		r.kill(w.t)
		r.run(w.t)
	}, func(w *world) { r.convert(w, mendedConversion) })
}

func scenariosOf(all []phased) []scenario {
	var scenarios []scenario
	for _, s := range all {
		scenarios = append(scenarios, s.scenario)
	}
	return scenarios
}

// restarts are scenarios during which the collector is killed. It is down in the second phase.
var restarts = []phased{
	{scenario{name: "killed before a background deletion"}, [3]func(*world){
		func(w *world) { w.create(secrets, "dependent", ownedBy(reference(w.create(configMaps, "owner")))) },
		func(w *world) { w.delete(configMaps, "owner", background) },
		func(w *world) { w.awaitGone(secrets, "dependent") },
	}},
	{scenario{name: "killed before a foreground deletion"}, [3]func(*world){
		func(w *world) {
			child := w.create(secrets, "child", ownedBy(reference(w.create(configMaps, "owner"))))
			w.create(widgets, "grandchild", ownedBy(reference(child)), finalizers(foreign))
		},
		func(w *world) { w.delete(configMaps, "owner", foreground) },
		func(w *world) {
			w.awaitDeleted(widgets, "grandchild")
			w.expectWaiting(secrets, "child")
			w.expectWaiting(configMaps, "owner")
			w.setFinalizers(widgets, "grandchild")
			w.awaitGone(configMaps, "owner")
			w.expectGone(secrets, "child")
		},
	}},
	{scenario{name: "killed before a deletion with orphan"}, [3]func(*world){
		func(w *world) { w.create(widgets, "dependent", ownedBy(reference(w.create(configMaps, "owner")))) },
		func(w *world) { w.delete(configMaps, "owner", orphan) },
		func(w *world) {
			w.awaitGone(configMaps, "owner")
			w.awaitOwners(widgets, "dependent")
			w.expectKept(widgets, "dependent")
		},
	}},
	{scenario{name: "killed amid a background deletion"}, [3]func(*world){
		func(w *world) {
			owner := w.create(configMaps, "owner")
			w.create(secrets, "dependent", ownedBy(reference(owner)))
			w.create(secrets, "frozen", ownedBy(reference(owner)), frozen("DELETE"))
			w.delete(configMaps, "owner", background)
			w.awaitGone(secrets, "dependent")
		},
		func(w *world) { w.thaw(secrets, "frozen") },
		func(w *world) { w.awaitGone(secrets, "frozen") },
	}},
	{scenario{name: "killed amid a foreground deletion"}, [3]func(*world){
		func(w *world) {
			w.create(secrets, "dependent", ownedBy(reference(w.create(configMaps, "owner"))), finalizers(foreign))
			w.delete(configMaps, "owner", foreground)
			w.awaitDeleted(secrets, "dependent")
		},
		nothing,
		func(w *world) {
			w.expectWaiting(configMaps, "owner")
			w.setFinalizers(secrets, "dependent")
			w.awaitGone(configMaps, "owner")
		},
	}},
	{scenario{name: "killed amid a foreground deletion whose dependents end meanwhile"}, [3]func(*world){
		func(w *world) {
			w.create(secrets, "dependent", ownedBy(reference(w.create(configMaps, "owner"))), finalizers(foreign))
			w.delete(configMaps, "owner", foreground)
			w.awaitDeleted(secrets, "dependent")
		},
		func(w *world) { w.setFinalizers(secrets, "dependent") },
		func(w *world) { w.awaitGone(configMaps, "owner") },
	}},
	{scenario{name: "killed amid orphaning"}, [3]func(*world){
		func(w *world) {
			owner := w.create(configMaps, "owner")
			w.create(secrets, "first", ownedBy(reference(owner)))
			w.create(secrets, "second", ownedBy(reference(owner)), frozen("UPDATE"))
			w.delete(configMaps, "owner", orphan)
			w.awaitOwners(secrets, "first")
		},
		func(w *world) { w.thaw(secrets, "second") },
		func(w *world) {
			w.awaitGone(configMaps, "owner")
			w.awaitOwners(secrets, "second")
			w.expectKept(secrets, "second")
		},
	}},
	{scenario{name: "killed after a deletion: live owners keep their dependents"}, [3]func(*world){
		func(w *world) {
			first, second := w.create(configMaps, "first"), w.create(configMaps, "second")
			w.create(secrets, "first", ownedBy(reference(first)))
			w.create(secrets, "second", ownedBy(reference(second)))
			w.delete(configMaps, "first", foreground)
			w.awaitGone(configMaps, "first")
		},
		nothing,
		func(w *world) { w.expectKept(secrets, "second") },
	}},
	{scenario{name: "policy changed from foreground to orphan meanwhile"}, [3]func(*world){
		func(w *world) {
			w.create(secrets, "dependent", ownedBy(reference(w.create(configMaps, "owner"))), frozen("DELETE"))
			w.delete(configMaps, "owner", foreground)
			w.expectWaiting(configMaps, "owner")
		},
		func(w *world) {
			w.delete(configMaps, "owner", orphan)
			w.thaw(secrets, "dependent")
		},
		func(w *world) {
			w.awaitGone(configMaps, "owner")
			w.awaitOwners(secrets, "dependent")
			w.expectKept(secrets, "dependent")
		},
	}},
	{scenario{name: "policy changed from orphan to foreground meanwhile"}, [3]func(*world){
		func(w *world) {
			w.create(secrets, "dependent", ownedBy(reference(w.create(configMaps, "owner"))), frozen("UPDATE"),
				finalizers(foreign))
			w.delete(configMaps, "owner", orphan)
			w.expectWaiting(configMaps, "owner")
		},
		func(w *world) {
			w.delete(configMaps, "owner", foreground)
			w.thaw(secrets, "dependent")
		},
		func(w *world) {
			w.awaitDeleted(secrets, "dependent")
			w.expectWaiting(configMaps, "owner")
			w.setFinalizers(secrets, "dependent")
			w.awaitGone(configMaps, "owner")
		},
	}},
	{scenario{name: "owner created again under its name meanwhile"}, [3]func(*world){
		func(w *world) { w.create(secrets, "dependent", ownedBy(reference(w.create(configMaps, "owner")))) },
		func(w *world) {
			w.delete(configMaps, "owner", background)
			w.create(secrets, "next", ownedBy(reference(w.create(configMaps, "owner"))))
		},
		func(w *world) {
			w.awaitGone(secrets, "dependent")
			w.expectKept(secrets, "next")
		},
	}},
	{scenario{name: "references swapped meanwhile"}, [3]func(*world){
		func(w *world) { w.create(secrets, "dependent", ownedBy(reference(w.create(configMaps, "first")))) },
		func(w *world) {
			w.delete(configMaps, "first", background)
			w.own(secrets, "dependent", reference(w.create(configMaps, "second")))
		},
		func(w *world) { w.expectKept(secrets, "dependent") },
	}},
	{scenario{name: "garbage created meanwhile"}, [3]func(*world){
		nothing,
		func(w *world) {
			w.create(secrets, "dependent", ownedBy(bogus(25)...))
			w.create(secrets, "unresolvable", ownedBy(unknownOwner))
		},
		func(w *world) {
			w.awaitGone(secrets, "dependent")
			w.expectKept(secrets, "unresolvable")
		},
	}},
	{scenario{name: "cycle of 3, one deleted in the foreground meanwhile"}, [3]func(*world){
		func(w *world) { w.ring(3) },
		func(w *world) { w.delete(configMaps, member(0), foreground) },
		func(w *world) { w.awaitMembersGone(3) },
	}},
	{scenario{name: "cycle of 2, each deleted in the foreground meanwhile",
		stock: &difference{does: "all members wait for ever", why: cycleHangs}}, [3]func(*world){
		func(w *world) { w.ring(2) },
		func(w *world) {
			w.delete(configMaps, member(0), foreground)
			w.delete(configMaps, member(1), foreground)
		},
		func(w *world) {
			if w.side == stock {
				hangs(2).stock(w)
				return
			}
			w.awaitMembersGone(2)
		},
	}},
	{scenario{name: "kind defined and owner deleted meanwhile"}, [3]func(*world){
		nothing,
		func(w *world) {
			late := w.define("Newcomer", "newcomers")
			w.create(late, "dependent", ownedBy(reference(w.create(configMaps, "owner"))))
			w.delete(configMaps, "owner", foreground)
		},
		func(w *world) {
			w.awaitGone(configMaps, "owner")
			w.expectGone(customKind("Newcomer", "newcomers"), "dependent")
		},
	}},
	{scenario{name: "definition deleted meanwhile: the owner that its objects blocked is released"}, [3]func(*world){
		func(w *world) {
			w.create(gizmos, "dependent", ownedBy(reference(w.create(configMaps, "owner"))), finalizers(foreign))
			w.delete(configMaps, "owner", foreground)
			w.awaitDeleted(gizmos, "dependent")
		},
		func(w *world) {
			w.setFinalizers(gizmos, "dependent")
			w.undefine(gizmos)
			w.awaitUndefined(gizmos)
		},
		func(w *world) { w.awaitGone(configMaps, "owner") },
	}},
	{scenario{name: "finalizer foregroundDeletion removed meanwhile"}, [3]func(*world){
		func(w *world) {
			w.create(secrets, "dependent", ownedBy(reference(w.create(configMaps, "owner"))), frozen("DELETE"))
			w.delete(configMaps, "owner", foreground)
			w.expectWaiting(configMaps, "owner")
		},
		func(w *world) {
			w.setFinalizers(configMaps, "owner")
			w.thaw(secrets, "dependent")
		},
		func(w *world) { w.awaitGone(secrets, "dependent") },
	}},
}
