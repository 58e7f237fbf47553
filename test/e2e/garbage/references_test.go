package garbage

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	unservedVersion = "no reference is resolved whose version is not served; it is retried for ever"
	blocksByUID     = "a dependent blocks the owner with its UID, whatever else the reference says"
	allOrNothing    = "one reference that cannot be resolved keeps all others from being judged"
)

// references are owner references with each coordinate wrong.
var references = []scenario{
	{name: "another name: absent, the dependent is deleted", run: func(w *world) {
		w.create(secrets, "dependent", ownedBy(w.wrong(func(r *metav1.OwnerReference) { r.Name = "other" })))
		w.awaitGone(secrets, "dependent")
	}},
	{name: "another UID: absent, the dependent is deleted", run: func(w *world) {
		w.create(secrets, "dependent", ownedBy(w.wrong(func(r *metav1.OwnerReference) { r.UID = uid(1) })))
		w.awaitGone(secrets, "dependent")
		w.expectKept(configMaps, "owner")
	}},
	{name: "the UID of another object of the same kind", run: func(w *world) {
		other := w.create(configMaps, "other")
		w.create(secrets, "dependent", ownedBy(w.wrong(func(r *metav1.OwnerReference) { r.UID = other.GetUID() })))
		w.awaitGone(secrets, "dependent")
	}},
	{name: "another kind: absent, the dependent is deleted", run: func(w *world) {
		w.create(secrets, "dependent", ownedBy(w.wrong(func(r *metav1.OwnerReference) { r.Kind = "ServiceAccount" })))
		w.awaitGone(secrets, "dependent")
	}},
	{name: "another kind, cluster-scoped: absent, the dependent is deleted", run: func(w *world) {
		w.create(secrets, "dependent", ownedBy(w.wrong(func(r *metav1.OwnerReference) { r.Kind = "Namespace" })))
		w.awaitGone(secrets, "dependent")
	}},
	{name: "another group with the same kind: absent, the dependent is deleted", run: func(w *world) {
		r := reference(w.create(widgets, "owner"))
		r.APIVersion = otherWidgets.apiVersion()
		w.create(secrets, "dependent", ownedBy(r))
		w.awaitGone(secrets, "dependent")
		w.expectKept(widgets, "owner")
	}},
	{name: "another namespace: absent, the dependent is deleted, with an event", oneLife: "an event may be lost",
		run: func(w *world) {
			owner := w.create(configMaps, "owner", inNamespace(w.newNamespace()))
			w.create(secrets, "dependent", ownedBy(reference(owner)))
			w.awaitGone(secrets, "dependent")
			w.awaitEvent("OwnerRefInvalidNamespace", fmt.Sprintf("does not exist in namespace %q", w.namespace))
		}},
	{name: "another namespace, and an owner of the same name: absent", run: func(w *world) {
		owner := w.create(configMaps, "owner", inNamespace(w.newNamespace()))
		w.create(configMaps, "owner")
		w.create(secrets, "dependent", ownedBy(reference(owner)))
		w.awaitGone(secrets, "dependent")
		w.expectKept(configMaps, "owner")
	}},
	{name: "another name beside a live owner: the reference is removed", run: func(w *world) {
		live := w.create(serviceAccounts, "live")
		w.create(secrets, "dependent", ownedBy(w.wrong(func(r *metav1.OwnerReference) { r.Name = "other" }), reference(live)))
		w.awaitOwners(secrets, "dependent", "live")
		w.delete(configMaps, "owner", foreground)
		w.awaitGone(configMaps, "owner")
		w.expectKept(secrets, "dependent")
	}},
	{name: "another namespace beside a live owner: the reference is removed", run: func(w *world) {
		owner := w.create(configMaps, "owner", inNamespace(w.newNamespace()))
		live := w.create(serviceAccounts, "live")
		w.create(secrets, "dependent", ownedBy(reference(owner), reference(live)))
		w.awaitOwners(secrets, "dependent", "live")
		w.expectKept(secrets, "dependent")
	}},
	{name: "the owner twice, once under another name: the wrong reference is removed", run: func(w *world) {
		owner := w.create(widgets, "owner")
		r := reference(owner)
		r.Name = "other"
		w.create(widgets, "dependent", ownedBy(r, reference(owner)))
	}, stock: &difference{
		does: "both references are removed, and the dependent outlives its owner", why: "references are removed by UID",
		ours: func(w *world) {
			w.awaitOwners(widgets, "dependent", "owner")
			w.delete(widgets, "owner", background)
			w.awaitGone(widgets, "dependent")
		},
		stock: func(w *world) {
			w.awaitOwners(widgets, "dependent")
			w.delete(widgets, "owner", background)
			w.expectKept(widgets, "dependent")
		},
	}},
	{name: "a name created again has another UID: the dependent is deleted", run: func(w *world) {
		w.create(secrets, "dependent", ownedBy(reference(w.create(configMaps, "owner"))))
		w.delete(configMaps, "owner", background)
		owner := w.create(configMaps, "owner")
		w.create(secrets, "next", ownedBy(reference(owner)))
		w.awaitGone(secrets, "dependent")
		w.expectKept(secrets, "next")
		w.expectKept(configMaps, "owner")
	}},
	{name: "a dependent created again under its name with a live owner stays", run: func(w *world) {
		first, second := w.create(configMaps, "first"), w.create(configMaps, "second")
		w.create(secrets, "dependent", ownedBy(reference(first)), frozen("DELETE"))
		w.delete(configMaps, "first", background)
		w.settle()
		w.delete(secrets, "dependent", background)
		w.create(secrets, "dependent", ownedBy(reference(second)))
		w.expectKept(secrets, "dependent")
	}},
	{name: "a version that is served beside the preferred one owns", run: func(w *world) {
		r := reference(w.create(gizmos, "owner"))
		r.APIVersion = "e2e.exeunt.io/v1beta1"
		w.create(secrets, "dependent", ownedBy(r))
		w.expectKept(secrets, "dependent")
		w.delete(gizmos, "owner", foreground)
		w.awaitGone(gizmos, "owner")
		w.expectGone(secrets, "dependent")
	}},
	{name: "a version that is not served owns, background", run: func(w *world) {
		w.create(secrets, "dependent", ownedBy(w.unservedVersion()))
		w.expectKept(secrets, "dependent")
		w.delete(widgets, "owner", background)
	}, stock: &difference{
		does: "the dependent stays for ever", why: unservedVersion,
		ours:  func(w *world) { w.awaitGone(secrets, "dependent") },
		stock: func(w *world) { w.expectKept(secrets, "dependent") },
	}},
	{name: "a version that is not served owns, foreground", run: func(w *world) {
		w.create(secrets, "dependent", ownedBy(w.unservedVersion()))
		w.delete(widgets, "owner", foreground)
	}, stock: &difference{
		does: "the owner and the dependent stay for ever", why: unservedVersion,
		ours: func(w *world) {
			w.awaitGone(widgets, "owner")
			w.expectGone(secrets, "dependent")
		},
		stock: func(w *world) {
			w.expectKept(secrets, "dependent")
			w.expectWaiting(widgets, "owner")
		},
	}},
	{name: "a version that is not served owns, orphan", run: func(w *world) {
		w.create(secrets, "dependent", ownedBy(w.unservedVersion()))
		w.delete(widgets, "owner", orphan)
		w.awaitGone(widgets, "owner")
		w.awaitOwners(secrets, "dependent")
	}},
	{name: "a version without its group, and the name of a core kind: the dependent stays", run: func(w *world) {
		w.create(configMaps, "owner")
		for name, apiVersion := range map[string]string{"version": "v1beta2", "group": "serving.example.dev",
			"capital": "V1"} {
			w.create(secrets, name, ownedBy(metav1.OwnerReference{APIVersion: apiVersion, Kind: configMaps.name, Name: "owner",
				UID: uid(1)}))
			w.expectKept(secrets, name)
		}
	}},
	{name: "a kind in lower case owns, background", run: func(w *world) {
		w.create(secrets, "dependent", ownedBy(w.wrong(lowerCase)))
		w.expectKept(secrets, "dependent")
		w.delete(configMaps, "owner", background)
		w.awaitGone(secrets, "dependent")
	}},
	{name: "a kind in lower case owns, foreground: the owner goes last", run: func(w *world) {
		w.create(secrets, "dependent", ownedBy(w.wrong(lowerCase)), finalizers(foreign))
		w.delete(configMaps, "owner", foreground)
		w.awaitDeleted(secrets, "dependent")
		w.expectWaiting(configMaps, "owner")
		w.setFinalizers(secrets, "dependent")
		w.awaitGone(configMaps, "owner")
		w.expectGone(secrets, "dependent")
	}},
	{name: "a kind in lower case owns, orphan: the reference is removed", run: func(w *world) {
		w.create(secrets, "dependent", ownedBy(w.wrong(lowerCase)))
		w.delete(configMaps, "owner", orphan)
		w.awaitGone(configMaps, "owner")
		w.awaitOwners(secrets, "dependent")
	}},
	{name: "a kind that nobody serves: unresolvable, the dependent stays", run: func(w *world) {
		w.create(secrets, "dependent", ownedBy(unknownOwner))
		w.expectKept(secrets, "dependent")
	}},
	{name: "a group that nobody serves: unresolvable, the dependent outlives the object", run: func(w *world) {
		w.create(secrets, "dependent",
			ownedBy(w.wrong(func(r *metav1.OwnerReference) { r.APIVersion = "nobody.exeunt.io/v1" })))
		w.delete(configMaps, "owner", background)
		w.expectGone(configMaps, "owner")
		w.expectKept(secrets, "dependent")
	}},
	{name: "a group that nobody serves does not block the object", run: func(w *world) {
		w.create(secrets, "dependent",
			ownedBy(w.wrong(func(r *metav1.OwnerReference) { r.APIVersion = "nobody.exeunt.io/v1" })))
		w.delete(configMaps, "owner", foreground)
	}, stock: &difference{
		does: "the object waits for ever", why: blocksByUID,
		ours: func(w *world) {
			w.awaitGone(configMaps, "owner")
			w.expectKept(secrets, "dependent")
		},
		stock: func(w *world) {
			w.expectKept(secrets, "dependent")
			w.expectWaiting(configMaps, "owner")
		},
	}},
	{name: "an unresolvable and an absent owner: the dependent stays", run: func(w *world) {
		w.create(secrets, "dependent", ownedBy(unknownOwner), w.absentOwner())
		w.expectKept(secrets, "dependent")
	}},
	{name: "an unresolvable owner and one in the foreground: both stay", run: func(w *world) {
		owner := w.create(configMaps, "owner")
		w.create(secrets, "dependent", ownedBy(reference(owner), unknownOwner))
		w.delete(configMaps, "owner", foreground)
		w.expectKept(secrets, "dependent")
		w.expectWaiting(configMaps, "owner")
	}},
	{name: "an unresolvable, a live and an absent owner: the absent one is removed", run: func(w *world) {
		w.create(secrets, "dependent", ownedBy(unknownOwner, reference(w.create(configMaps, "live"))), w.absentOwner())
	}, stock: &difference{
		does: "all references stay", why: allOrNothing,
		ours: func(w *world) { w.awaitOwners(secrets, "dependent", "unknown", "live") },
		stock: func(w *world) {
			w.settle()
			w.awaitOwners(secrets, "dependent", "unknown", "live", "absent")
		},
	}},
	{name: "an unresolvable and a live owner, and one in the foreground: the last one is released", run: func(w *world) {
		live, owner := w.create(configMaps, "live"), w.create(configMaps, "owner")
		w.create(secrets, "dependent", ownedBy(unknownOwner, reference(live), reference(owner)))
		w.delete(configMaps, "owner", foreground)
	}, stock: &difference{
		does: "the owner in the foreground waits for ever", why: allOrNothing,
		ours: func(w *world) {
			w.awaitGone(configMaps, "owner")
			w.awaitOwners(secrets, "dependent", "unknown", "live")
		},
		stock: func(w *world) { w.expectWaiting(configMaps, "owner") },
	}},
	{name: "a kind that is defined later: the dependent of an absent owner is deleted", run: func(w *world) {
		gadgets := kind{GroupVersionResource: widgets.GroupVersion().WithResource("gadgets"), name: "Gadget",
			namespaced: true}
		w.create(secrets, "dependent",
			ownedBy(metav1.OwnerReference{APIVersion: gadgets.apiVersion(), Kind: gadgets.name, Name: "absent", UID: uid(1)}))
		w.expectKept(secrets, "dependent")
		w.define("Gadget", "gadgets")
		w.awaitGone(secrets, "dependent")
	}},
	{name: "a cluster-scoped dependent of a namespaced owner stays, background", run: func(w *world) {
		w.create(classes, "dependent", ownedBy(reference(w.create(configMaps, "owner"))))
		w.delete(configMaps, "owner", background)
		w.expectKept(classes, "dependent")
	}},
	{name: "a cluster-scoped dependent of a namespaced owner does not block it", run: func(w *world) {
		w.create(classes, "dependent", ownedBy(reference(w.create(configMaps, "owner"))))
		w.delete(configMaps, "owner", foreground)
	}, stock: &difference{
		does: "the owner waits for ever", why: blocksByUID,
		ours: func(w *world) {
			w.awaitGone(configMaps, "owner")
			w.expectKept(classes, "dependent")
		},
		stock: func(w *world) {
			w.expectKept(classes, "dependent")
			w.expectWaiting(configMaps, "owner")
		},
	}},
	{name: "a cluster-scoped dependent of a namespaced and an absent owner stays", run: func(w *world) {
		absent := metav1.OwnerReference{APIVersion: classes.apiVersion(), Kind: classes.name, Name: "absent", UID: uid(1)}
		w.create(fleets, "dependent", ownedBy(reference(w.create(configMaps, "owner")), absent))
		w.delete(configMaps, "owner", background)
		w.expectKept(fleets, "dependent")
	}},
}

// unknownOwner refers to a kind that nobody serves.
var unknownOwner = metav1.OwnerReference{APIVersion: "e2e.exeunt.io/v1", Kind: "Unknown", Name: "unknown", UID: uid(99)}

// lowerCase writes the kind of the reference in lower case.
func lowerCase(r *metav1.OwnerReference) { r.Kind = strings.ToLower(r.Kind) }

// wrong creates an owner, and returns a reference to it with a wrong coordinate.
func (w *world) wrong(change func(*metav1.OwnerReference)) metav1.OwnerReference {
	w.t.Helper()
	r := reference(w.create(configMaps, "owner"))
	change(&r)
	return r
}

// unservedVersion creates an owner, and returns a reference to it in a version that is not served.
func (w *world) unservedVersion() metav1.OwnerReference {
	w.t.Helper()
	r := reference(w.create(widgets, "owner"))
	r.APIVersion = "e2e.exeunt.io/v0"
	return r
}

// awaitEvent waits for an event in the namespace with the reason and the text.
func (w *world) awaitEvent(reason, text string) {
	w.t.Helper()
	w.await(reason+" is sent", func() bool {
		events, err := w.typed.CoreV1().Events(w.namespace).List(w.ctx, metav1.ListOptions{FieldSelector: "reason=" + reason})
		must(w.t, err, "list events")
		for i := range events.Items {
			if strings.Contains(events.Items[i].Message, text) {
				return true
			}
		}
		return false
	})
}
