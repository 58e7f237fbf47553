package graph_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	. "github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

// A list is recorded while it is being received, so that an object of the list may be gone when the list ends.
func TestListIsComparedObjectByObject(t *testing.T) {
	w := newWorld()
	w.observe(pods, "listed")
	w.observe(pods, "vanished")
	w.observe(pods, "deleted meanwhile")
	w.Deleted("deleted meanwhile", Coordinates{pods.GroupKind(), "ns", "deleted meanwhile"})
	w.Vanished(pods, "9", map[types.UID]struct{}{"listed": {}, "deleted meanwhile": {}})
	if !w.Has("listed") || w.Has("vanished") {
		t.Errorf("listed: %v, vanished: %v", w.Has("listed"), w.Has("vanished"))
	}
}
