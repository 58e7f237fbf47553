package graph_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	. "github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

// A replicator may copy an object with its owner references into many namespaces.
func TestAbsenceConcernsOneNamespace(t *testing.T) {
	w := newWorld()
	for _, namespace := range []string{"one", "two", "three"} {
		w.observe(pods, namespace, inNamespace(namespace), ownedBy(configMaps, "owner"))
	}
	w.TakeChanged()
	w.Deleted("owner", Coordinates{GroupKind: configMaps.GroupKind(), Namespace: "two", Name: "owner"})
	if got := w.TakeChanged(); !slices.Equal(got, []types.UID{"two"}) {
		t.Errorf("judged again: %v", got)
	}
	if w.state(t, "two").Unverified || !w.state(t, "one").Unverified {
		t.Error("the absence in one namespace is not one in that namespace alone")
	}
}

// The definition of a kind ends right after its last object, before all dependents are deleted.
func TestAbsenceOutlivesKind(t *testing.T) {
	for name, end := range map[string]func(*world){
		"withdrawn": func(w *world) { w.Withdraw(configMaps.GroupKind()) },
		"dropped":   func(w *world) { w.Withdraw(configMaps.GroupKind()); w.Drop(configMaps) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.observe(configMaps, "owner")
			w.observe(configMaps, "other")
			w.observe(pods, "pod", ownedBy(configMaps, "owner"))
			w.observe(pods, "unknown", ownedBy(configMaps, "other"))
			w.Deleted("owner", at(configMaps, "ns", "owner"))
			end(w)
			if got := w.state(t, "pod"); !got.Absent || got.Unresolvable {
				t.Errorf("the owner was gone: %+v", got)
			}
			if got := w.state(t, "unknown"); got.Absent || !got.Unresolvable {
				t.Errorf("the owner was not gone: %+v", got)
			}
		})
	}
}
