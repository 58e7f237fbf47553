package graph_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	. "github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

// Two groups, or two watches of one path, may deliver one object under two kinds.
func TestObjectOfTwoKindsKeepsItsBlockers(t *testing.T) {
	w := newWorld()
	w.observe(configMaps, "owner", deleted(metav1.FinalizerDeleteDependents))
	w.observe(pods, "dependent", ownedBy(configMaps, "owner"))
	w.observe(pods, "owner", deleted(metav1.FinalizerDeleteDependents))
	if !w.state(t, "owner").Blocking {
		t.Error("the dependent no longer blocks")
	}
	w.observe(pods, "other", ownedBy(pods, "owner"))
	w.Deleted("dependent", at(pods, "ns", "dependent"))
	if !w.state(t, "owner").Blocking {
		t.Error("a dependent that names the other kind does not block")
	}
	w.observe(configMaps, "owner", deleted(metav1.FinalizerDeleteDependents))
	w.Deleted("other", at(pods, "ns", "other"))
	if got := w.state(t, "owner"); got.Blocking || got.Dependents {
		t.Errorf("without dependents: %+v", got)
	}
}

func TestOrphaningObjectOfTwoKindsKeepsItsDependents(t *testing.T) {
	w := newWorld()
	w.observe(configMaps, "owner", deleted(metav1.FinalizerOrphanDependents))
	w.observe(pods, "dependent", ownedBy(configMaps, "owner"))
	w.observe(pods, "owner", deleted(metav1.FinalizerOrphanDependents))
	if !w.state(t, "owner").Dependents {
		t.Error("the dependent is no longer waited for")
	}
}

func TestOwnerOfTwoKindsLivesUnderBoth(t *testing.T) {
	w := newWorld()
	w.observe(configMaps, "owner")
	w.observe(pods, "owner")
	w.observe(pods, "one", ownedBy(configMaps, "owner"))
	w.observe(pods, "two", ownedBy(pods, "owner"))
	for _, name := range []string{"one", "two"} {
		if got := w.state(t, name); !got.Live || got.Unverified {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// The watch of one kind says that the object is gone: the other one may be behind, or know better.
func TestObjectOfTwoKindsIsReadBeforeItIsGone(t *testing.T) {
	w := newWorld()
	w.observe(configMaps, "owner", deleted(metav1.FinalizerDeleteDependents))
	w.observe(pods, "owner", deleted(metav1.FinalizerDeleteDependents))
	w.observe(nodes, "unrelated")
	w.observe(pods, "dependent", ownedBy(configMaps, "owner"))
	w.TakeChanged()
	w.Deleted("owner", at(pods, "ns", "owner"))
	if j, found := w.Judge("owner", now); !found || j.Kind != configMaps || !j.State.Missing || !j.State.Blocking {
		t.Errorf("after the first end: %+v, %v", j, found)
	}
	if !slices.Contains(w.TakeChanged(), "owner") {
		t.Error("the object is not judged")
	}
	w.Deleted("owner", at(configMaps, "ns", "owner"))
	if got := w.state(t, "dependent"); w.Has("owner") || !got.Absent {
		t.Errorf("after both ends: %+v", got)
	}
}

func TestKindThatIsGoneLeavesTheOther(t *testing.T) {
	for name, kind := range map[string]*Kind{"observed last": pods, "observed first": configMaps} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.observe(configMaps, "owner", deleted(metav1.FinalizerDeleteDependents))
			w.observe(configMaps, "dependent", ownedBy(pods, "owner"))
			w.observe(pods, "owner", deleted(metav1.FinalizerDeleteDependents))
			w.Drop(kind)
			if !w.Has("owner") {
				t.Error("the object is forgotten, which the other kind has")
			}
			if j, _ := w.Judge("owner", now); j.Kind == kind {
				t.Error("the object is still of the kind that is gone")
			}
		})
	}
}

func TestDroppedKindBlocksNoLonger(t *testing.T) {
	w := newWorld()
	w.observe(configMaps, "owner", deleted(metav1.FinalizerDeleteDependents))
	w.observe(pods, "owner", deleted(metav1.FinalizerDeleteDependents))
	w.observe(configMaps, "dependent", ownedBy(configMaps, "owner"), ownedBy(pods, "owner"))
	w.Drop(pods)
	if !w.state(t, "owner").Blocking {
		t.Error("the reference to the kind that remains does not block")
	}
	w.observe(configMaps, "dependent", ownedBy(pods, "owner"))
	w.TakeChanged()
	if w.state(t, "owner").Blocking {
		t.Error("the reference to the kind that is gone blocks")
	}
}

func TestRefreshedKindKeepsItsPlace(t *testing.T) {
	later := &Kind{GroupVersionKind: configMaps.GroupKind().WithVersion("v2"), Resource: "configmaps", Namespaced: true}
	w := newWorld()
	w.observe(configMaps, "owner", deleted(metav1.FinalizerDeleteDependents))
	w.observe(pods, "owner", deleted(metav1.FinalizerDeleteDependents))
	w.Replace(configMaps, later)
	w.Deleted("owner", at(pods, "ns", "owner"))
	if j, found := w.Judge(types.UID("owner"), now); !found || j.Kind != later {
		t.Errorf("of kind %v, %v", j.Kind, found)
	}
}

// The list of one kind lacks the object, which the other one delivered last.
func TestObjectThatOneKindLacksIsReadThere(t *testing.T) {
	w := newWorld()
	w.observe(configMaps, "owner")
	w.observe(pods, "owner")
	w.observe(pods, "dependent", ownedBy(configMaps, "owner"))
	w.Vanished(configMaps, "9", nil)
	if j, _ := w.Judge("owner", now); !j.State.Missing || j.Kind != configMaps {
		t.Fatalf("of kind %v: %+v", j.Kind, j.State)
	}
	w.Deleted("owner", at(configMaps, "ns", "owner"))
	if got := w.state(t, "dependent"); !got.Absent || !w.Has("owner") {
		t.Errorf("dependent: %+v", got)
	}
	w.Vanished(pods, "9", map[types.UID]struct{}{"dependent": {}})
	if j, _ := w.Judge("owner", now); !j.State.Missing || j.Kind != pods {
		t.Errorf("of kind %v: %+v", j.Kind, j.State)
	}
}

// A barrier listed both kinds, and the watch of the first one is behind its list.
func TestLateEventOfTheOtherKindIsOld(t *testing.T) {
	for name, finalizer := range map[string]string{"foreground": metav1.FinalizerDeleteDependents,
		"orphan": metav1.FinalizerOrphanDependents} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.observe(nodes, "owner", deleted(finalizer))
			late := object(pods, "dependent")
			late.ResourceVersion = "2"
			w.version = 2
			w.observe(pods, "dependent", ownedBy(nodes, "owner"))
			w.observe(configMaps, "dependent", ownedBy(nodes, "owner"))
			if w.Observe(pods, late) || !w.state(t, "owner").Dependents {
				t.Errorf("an event that is older than the list is recorded: %+v", w.state(t, "owner"))
			}
			w.Rewind(pods)
			if !w.Observe(pods, late) {
				t.Error("what etcd has after its restore is not recorded")
			}
		})
	}
}

// A late event of the other kind is taken for the newest state until a list shows that it is not.
func TestListMendsWhatALateEventOfTheOtherKindUndid(t *testing.T) {
	w := newWorld()
	w.observe(nodes, "owner", deleted(metav1.FinalizerDeleteDependents))
	now := object(pods, "dependent", ownedBy(nodes, "owner"))
	now.ResourceVersion = "9"
	w.Observe(pods, now)
	late := object(configMaps, "dependent")
	late.ResourceVersion = "8"
	w.Observe(configMaps, late)
	w.Observe(pods, now)
	if got := w.state(t, "owner"); !got.Blocking {
		t.Errorf("the list is not recorded: %+v", got)
	}
}

func TestObjectServedInTwoGroupsKeepsItsEpoch(t *testing.T) {
	w := newWorld()
	w.observe(configMaps, "owner", deleted(metav1.FinalizerDeleteDependents))
	first, _, _ := w.Epoch("owner")
	w.observe(pods, "owner", deleted(metav1.FinalizerDeleteDependents))
	if second, _, _ := w.Epoch("owner"); second != first {
		t.Errorf("epoch %d, then %d", first, second)
	}
}
