package graph_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

// A definition may be away for a moment and come back with another version only.
func TestReplacedKindResolvesReferences(t *testing.T) {
	widget := func(version string) *Kind {
		return &Kind{GroupVersionKind: schema.GroupVersionKind{Group: "g", Version: version, Kind: "Widget"},
			Resource: "widgets", Namespaced: true}
	}
	former, next := widget("v1"), widget("v2")
	g := New()
	g.Serve(pods)
	g.Serve(former)
	g.Observe(pods, &metav1.ObjectMeta{Namespace: "ns", Name: "dependent", UID: "dependent", ResourceVersion: "1",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "g/v1", Kind: "Widget", Name: "owner", UID: "owner"}}})
	g.Withdraw(former.GroupKind())
	g.TakeChanged()
	g.Replace(former, next)
	if changed := g.TakeChanged(); !slices.Contains(changed, "dependent") {
		t.Errorf("judged again: %v", changed)
	}
}

// An answer may be older than the list that arrives before it: it must not hide that the object is gone.
func TestLateAnswerDoesNotHideWhatAListLacked(t *testing.T) {
	for name, answer := range map[string]func(*world, Object, metav1.Object){
		"to a write": func(w *world, _ Object, late metav1.Object) { w.Refresh(pods, late) },
		"to a read":  func(w *world, known Object, late metav1.Object) { w.Confirm(known, late) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.observe(configMaps, "owner", deleted(metav1.FinalizerDeleteDependents))
			w.observe(pods, "pod", ownedBy(configMaps, "owner"))
			known, _ := w.Judge("pod", now)
			w.Vanished(pods, "90", nil)
			late := object(pods, "pod", ownedBy(configMaps, "owner"))
			late.ResourceVersion = "80"
			answer(w, known.Object, late)
			if !w.state(t, "pod").Missing {
				t.Fatal("the object is no longer to be read")
			}
			known, _ = w.Judge("pod", now)
			w.Confirm(known.Object, late)
			if w.state(t, "pod").Missing {
				t.Error("a read that began later does not count")
			}
		})
	}
}
