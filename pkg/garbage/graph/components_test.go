package graph_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var inForeground = deleted(metav1.FinalizerDeleteDependents)

func unblocking(r *metav1.OwnerReference) { r.BlockOwnerDeletion = nil }

var componentCases = map[string]struct {
	build   func(*world)
	want    []string
	blocked bool
}{
	"self-reference": {func(w *world) { w.observe(pods, "a", ownedBy(pods, "a"), inForeground) }, []string{"a"}, false},
	"two": {func(w *world) {
		w.observe(pods, "a", ownedBy(pods, "b"), inForeground)
		w.observe(pods, "b", ownedBy(pods, "a"), inForeground)
	}, []string{"a b"}, false},
	"a blocker outside": {func(w *world) {
		w.observe(pods, "a", ownedBy(pods, "b"), inForeground)
		w.observe(pods, "b", ownedBy(pods, "a"), inForeground)
		w.observe(configMaps, "c", ownedBy(pods, "a"))
	}, []string{"a b"}, true},
	"a dependent outside that does not block": {func(w *world) {
		w.observe(pods, "a", ownedBy(pods, "b"), inForeground)
		w.observe(pods, "b", ownedBy(pods, "a"), inForeground)
		w.observe(configMaps, "c", ownedBy(pods, "a", unblocking))
	}, []string{"a b"}, false},
	"a cycle through a reference that does not block": {func(w *world) {
		w.observe(pods, "a", ownedBy(pods, "b"), inForeground)
		w.observe(pods, "b", ownedBy(pods, "a", unblocking), inForeground)
	}, nil, false},
	"a self-reference that does not block, below another owner": {func(w *world) {
		w.observe(pods, "b", ownedBy(pods, "a"), inForeground)
		w.observe(configMaps, "c", ownedBy(pods, "b"), inForeground)
		w.observe(pods, "a", inForeground)
	}, nil, false},
	"one not in foreground": {func(w *world) {
		w.observe(pods, "a", ownedBy(pods, "b"), inForeground)
		w.observe(pods, "b", ownedBy(pods, "a"), deleted("other"))
	}, nil, false},
	"an owner deleted after its dependent": {func(w *world) {
		w.observe(pods, "a", ownedBy(pods, "b"), inForeground)
		w.observe(pods, "b", inForeground)
	}, nil, false},
}

func TestComponents(t *testing.T) {
	for name, tc := range componentCases {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			tc.build(w)
			var got []string
			for _, c := range w.Components() {
				var names []string
				for _, m := range c.Members {
					names = append(names, m.Name)
				}
				got = append(got, strings.Join(names, " "))
				if c.BlockedOutside != tc.blocked || c.Seen {
					t.Errorf("blocked outside: %v, seen: %v", c.BlockedOutside, c.Seen)
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// The search of a long chain of owners neither recurses nor takes quadratic time, which would take minutes.
func TestComponentsOfLongChain(t *testing.T) {
	w := newWorld()
	const length = 100_000
	for i := range length {
		w.observe(pods, strconv.Itoa(i), ownedBy(pods, strconv.Itoa((i+1)%length)), deleted(metav1.FinalizerDeleteDependents))
	}
	components := w.Components()
	if len(components) != 1 || len(components[0].Members) != length {
		t.Fatalf("%d components", len(components))
	}
}

// The live dependents of an owner that has no owner itself are not visited: the search runs while they are being
// deleted.
func TestComponentsSkipsDependentsOfLoneOwner(t *testing.T) {
	w := newWorld()
	empty := testing.AllocsPerRun(10, func() { w.Components() })
	w.observe(pods, "owner", inForeground)
	for i := range 100 {
		w.observe(configMaps, strconv.Itoa(i), ownedBy(pods, "owner"))
	}
	if got := testing.AllocsPerRun(10, func() { w.Components() }); got > empty {
		t.Errorf("%v allocations, and %v without the owner", got, empty)
	}
}
