package garbage

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// newKinds are scenarios with a kind that was defined just now: the watch of the definitions is
// held back.
var newKinds = []scenario{
	{name: "an owner outlives dependents of a kind that is new", run: func(w *world) {
		gadgets := w.define("Gadget", "gadgets")
		owner := w.create(configMaps, "owner")
		child := w.create(gadgets, "child", ownedBy(reference(owner)))
		w.create(gadgets, "grandchild", ownedBy(reference(child)), w.keptFromStock())
		w.delete(configMaps, "owner", foreground)
		w.awaitGone(configMaps, "owner")
		w.late = gadgets
	}, stock: &difference{
		does: "the owner is gone before its dependents", why: newKindUnseen,
		ours: func(w *world) {
			w.expectGone(w.late, "child")
			w.expectGone(w.late, "grandchild")
		},
		stock: func(w *world) { w.expectExists(w.late, "grandchild") },
	}},
	{name: "orphans of a kind that is new stay", run: func(w *world) {
		w.late = w.define("Gasket", "gaskets")
		owner := w.create(configMaps, "owner")
		w.create(w.late, "dependent", ownedBy(reference(owner)))
		w.delete(configMaps, "owner", orphan)
		w.awaitGone(configMaps, "owner")
	}, stock: &difference{
		does: "they are deleted", why: newKindUnseen,
		ours: func(w *world) {
			w.awaitOwners(w.late, "dependent")
			w.expectKept(w.late, "dependent")
		},
		stock: func(w *world) { w.awaitGone(w.late, "dependent") },
	}},
	{name: "a kind that is new is watched after the deletion that found it", run: func(w *world) {
		w.late = w.define("Gauge", "gauges")
		owner := w.create(configMaps, "owner")
		w.create(w.late, "child", ownedBy(reference(owner)), finalizers(foreign))
		w.delete(configMaps, "owner", foreground)
	}, stock: &difference{
		does: "the owner is gone before its dependents", why: newKindUnseen,
		ours: func(w *world) {
			w.awaitDeleted(w.late, "child")
			w.expectWaiting(configMaps, "owner")
			w.setFinalizers(w.late, "child")
			w.awaitGone(configMaps, "owner")
		},
		stock: func(w *world) {
			w.awaitGone(configMaps, "owner")
			w.expectExists(w.late, "child")
		},
	}},
}

const newKindUnseen = "new kinds are found each 30 s only, and not waited for"

// gears is a custom kind whose conversion breaks.
var gears = customKind("Gear", "gears")

// brokenConversion adds a version that is preferred, and that only a webhook can convert to.
const brokenConversion = `{"spec":{"versions":[
{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}},
{"name":"v2","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}],
"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":"https://127.0.0.1:1/convert"}}}}}`

// mendedConversion needs no webhook.
const mendedConversion = `{"spec":{"conversion":{"strategy":"None","webhook":null}}}`

// unreadable are scenarios with a kind that cannot be listed: its conversion webhook is broken when
// the collector starts, and mended in the last phase.
var unreadable = []phased{
	{scenario: scenario{name: "other kinds are collected", about: "kubernetes#101078, #125796"}, phases: [3]func(*world){
		func(w *world) {
			w.create(secrets, "dependent", ownedBy(reference(w.create(configMaps, "owner"))))
		},
		func(w *world) {
			w.delete(configMaps, "owner", background)
			w.awaitGone(secrets, "dependent")
		},
		nothing,
	}},
	{scenario: scenario{name: "a foreground deletion does not wait for the kind for ever", about: "kubernetes#125796"},
		phases: [3]func(*world){
			func(w *world) {
				w.create(gears, "dependent", ownedBy(reference(w.create(configMaps, "owner"))))
			},
			func(w *world) {
				w.delete(configMaps, "owner", foreground)
				w.awaitGone(configMaps, "owner")
			},
			func(w *world) { w.awaitGone(gears, "dependent") },
		}},
	{scenario: scenario{name: "orphaning waits until the kind can be listed", stock: &difference{
		does: "the owner is gone at once, and its dependents of the kind are deleted later", why: noBarrier,
	}}, phases: [3]func(*world){
		func(w *world) {
			w.create(gears, "dependent", ownedBy(reference(w.create(configMaps, "owner"))))
			w.create(secrets, "dependent", ownedBy(reference(w.get(configMaps, "owner"))))
		},
		func(w *world) {
			w.delete(configMaps, "owner", orphan)
			w.awaitOwners(secrets, "dependent")
			if w.side == stock {
				w.awaitGone(configMaps, "owner")
				return
			}
			w.create(configMaps, "waiting")
			w.delete(configMaps, "waiting", foreground)
			w.awaitGone(configMaps, "waiting")
			w.expectWaiting(configMaps, "owner")
		},
		func(w *world) {
			if w.side == stock {
				w.awaitGone(gears, "dependent")
				return
			}
			w.awaitGone(configMaps, "owner")
			w.awaitOwners(gears, "dependent")
			w.expectKept(gears, "dependent")
		},
	}},
	{scenario: scenario{name: "an owner of the kind keeps its dependents"}, phases: [3]func(*world){
		func(w *world) {
			w.create(secrets, "dependent", ownedBy(reference(w.create(gears, "owner"))))
		},
		func(w *world) { w.expectKept(secrets, "dependent") },
		func(w *world) {
			w.expectKept(secrets, "dependent")
			w.delete(gears, "owner", background)
			w.awaitGone(secrets, "dependent")
		},
	}},
	{scenario: scenario{name: "a dependent of the kind is deleted once the kind can be listed"}, phases: [3]func(*world){
		func(w *world) {
			w.create(gears, "dependent", ownedBy(reference(w.create(configMaps, "owner"))))
		},
		func(w *world) {
			w.delete(configMaps, "owner", background)
			w.settle()
			w.expectExists(gears, "dependent")
		},
		func(w *world) { w.awaitGone(gears, "dependent") },
	}},
}

func nothing(*world) {}

// keptFromStock keeps an object that upstream's controller deletes later than its owner.
func (w *world) keptFromStock() option {
	if w.side == stock {
		return finalizers(foreign)
	}
	return func(*unstructured.Unstructured) {}
}

// convert breaks or mends the conversion, and waits until this has an effect.
func (r *rig) convert(w *world, body string) {
	w.create(gears, "probe")
	_, err := r.client.Resource(crds.GroupVersionResource).Patch(w.ctx, gears.GroupResource().String(),
		types.MergePatchType, []byte(body), metav1.PatchOptions{})
	must(w.t, err, "patch definition")
	broken := body == brokenConversion
	v2 := gears
	v2.Version = "v2"
	w.await(fmt.Sprint("the conversion is broken: ", broken), func() bool {
		_, err := w.in(v2).List(w.ctx, metav1.ListOptions{})
		return (err != nil) == broken
	})
}
