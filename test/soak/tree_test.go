package main

import (
	"errors"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
)

func objectOf(uid string) *v1.ConfigMap {
	object := newObject(longLivedSpace, "object")
	object.UID = types.UID(uid)
	return object
}

func TestTreesHaveEveryOutcome(t *testing.T) {
	seen := map[TreeChoices]bool{}
	for n := range 200 {
		choices := NewTreeChoices(1, 0, n)
		choices.Undone = false
		seen[choices] = true
	}
	if len(seen) != 16 {
		t.Errorf("users choose %d trees, want each of 4 outcomes with each of 2 policies, denied or not", len(seen))
	}
	if one, two := NewTreeChoices(1, 2, 3), NewTreeChoices(1, 2, 3); one != two {
		t.Error("the same user makes other choices the second time")
	}
}

func TestDeletedObjectIsGone(t *testing.T) {
	deleted := objectOf("uid")
	deleted.DeletionTimestamp = new(metav1.Now())
	for name, tc := range map[string]struct {
		now  *v1.ConfigMap
		err  error
		want bool
	}{
		"it exists":                {objectOf("uid"), nil, false},
		"it is not found":          {nil, apierrors.NewNotFound(v1.Resource("configmaps"), "object"), true},
		"another one of its name":  {objectOf("other"), nil, true},
		"it is being deleted":      {deleted, nil, true},
		"the API server is away":   {nil, errors.New("connection refused"), false},
		"the read is not answered": {nil, apierrors.NewTimeoutError("", 0), false},
	} {
		if got := isGone(tc.now, tc.err, objectOf("uid")); got != tc.want {
			t.Errorf("%s: gone: %t, want %t", name, got, tc.want)
		}
	}
}

func TestEveryOwnerCounts(t *testing.T) {
	one, two := objectOf("one"), objectOf("two")
	for name, tc := range map[string]struct {
		named, wanted []*v1.ConfigMap
		want          bool
	}{
		"none":           {nil, nil, true},
		"both":           {[]*v1.ConfigMap{one, two}, []*v1.ConfigMap{two, one}, true},
		"one is left":    {[]*v1.ConfigMap{one, two}, []*v1.ConfigMap{one}, false},
		"one is missing": {[]*v1.ConfigMap{one}, []*v1.ConfigMap{one, two}, false},
		"another one":    {[]*v1.ConfigMap{one}, []*v1.ConfigMap{two}, false},
	} {
		if got := hasOwners(newObject(space, "object", tc.named...), tc.wanted); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}

func TestOwnersFollowTheOutcome(t *testing.T) {
	objects := map[string]*v1.ConfigMap{}
	for _, name := range []string{"owner", "other", "middle"} {
		objects[name] = objectOf(name)
	}
	for outcome, want := range map[Outcome][]*v1.ConfigMap{
		Collected: {objects["owner"]}, Orphaned: {objects["owner"]}, Shared: {objects["owner"], objects["other"]},
		Dangling: {objects["owner"], absent},
	} {
		f := &tree{choices: TreeChoices{Outcome: outcome}}
		if got := newObject(space, "middle", f.ownersOf("middle", objects)...); !hasOwners(got, want) {
			t.Errorf("%s: the middle object has the owners %v", outcome, got.OwnerReferences)
		}
		if orphan := f.policy() == metav1.DeletePropagationOrphan; orphan != (outcome == Orphaned) {
			t.Errorf("%s: the policy is %s", outcome, f.policy())
		}
	}
}

func TestDependentDeletedAfterRestoreIsLost(t *testing.T) {
	middle := objectOf("uid")
	p := detached{trees: []*detachedTree{{
		tree: tree{lifecycle: &lifecycle{space: longLivedSpace}}, middle: middle,
	}}}
	if found := p.lost(t.Context(), fake.NewClientset(middle)); len(found) > 0 {
		t.Errorf("while it exists: %v", found)
	}
	if found := p.lost(t.Context(), fake.NewClientset()); len(found) != 1 {
		t.Errorf("once it is deleted: %v", found)
	}
}

func TestRefusedTreesHaveEveryOutcome(t *testing.T) {
	seen := map[Outcome]bool{}
	for n := range treeUserCount {
		seen[refusedTree(n, Choices{Denied: true}).Outcome] = true
	}
	if len(seen) != len(outcomes) {
		t.Errorf("%d of %d outcomes: %v", len(seen), len(outcomes), seen)
	}
}
