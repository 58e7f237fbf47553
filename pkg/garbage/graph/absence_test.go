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
