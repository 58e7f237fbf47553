package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// Outcome is what becomes of a tree.
type Outcome string

// The outcomes of trees.
const (
	// Collected: the owner is deleted, and all its dependents go.
	Collected Outcome = "collected"
	// Orphaned: the owner is deleted with the policy Orphan, and its dependents stay.
	Orphaned Outcome = "orphaned"
	// Shared: the owner is deleted, and the middle object has another owner, which stays.
	Shared Outcome = "shared"
	// Dangling: the middle object names an absent owner beside the owner, which stays.
	Dangling Outcome = "dangling"
)

var outcomes = []Outcome{Collected, Orphaned, Shared, Dangling}

// TreeChoices is what a user does with one tree.
type TreeChoices struct {
	Outcome Outcome
	// Foreground deletes the owner in the foreground.
	Foreground bool
	// Denied: a webhook denies the first writes to the middle object. Undone: its metadata is restored after each.
	Denied, Undone bool
}

// NewTreeChoices returns the choices for the n-th tree of a user. They depend on nothing else.
func NewTreeChoices(seed uint64, user, n int) TreeChoices {
	random := rand.New(rand.NewPCG(seed, uint64(user+1000)<<32|uint64(n)))
	return TreeChoices{
		Outcome:    outcomes[random.IntN(len(outcomes))],
		Foreground: random.IntN(2) == 0, Denied: random.IntN(4) == 0, Undone: random.IntN(8) == 0,
	}
}

// tree is an owner, a middle object that depends on the owner, and a leaf that depends on the middle object.
type tree struct {
	*lifecycle
	choices TreeChoices
}

// absent is an owner that does not exist.
var absent = &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "absent", UID: "00000000-0000-0000-0000-00000000dead"}}

// errWaiting: the collector has not done its work yet.
var errWaiting = errors.New("not yet")

// run creates the tree, has the collector work, and deletes what is left.
func (t *tree) run(ctx context.Context) error {
	objects := map[string]*v1.ConfigMap{}
	for _, name := range []string{"owner", "other", "middle", "leaf"} {
		object, err := t.create(ctx, t.nameOf(name), t.ownersOf(name, objects)...)
		if err != nil {
			return err
		}
		objects[name] = object
	}
	owner, other, middle, leaf := objects["owner"], objects["other"], objects["middle"], objects["leaf"]
	if t.choices.Outcome != Dangling {
		if err := t.delete(ctx, owner, t.policy()); err != nil {
			return err
		}
	}
	if err := t.awaitOutcome(ctx, middle, leaf, owner, other); err != nil {
		return err
	}
	for _, object := range []*v1.ConfigMap{owner, other, middle} {
		if err := t.delete(ctx, object, metav1.DeletePropagationBackground); err != nil {
			return err
		}
	}
	return t.awaitGone(ctx, leaf)
}

// nameOf returns the name of a member of the tree.
func (t *tree) nameOf(member string) string {
	prefix := ""
	if member == "middle" {
		prefix = Choices{Denied: t.choices.Denied, Undone: t.choices.Undone}.prefix()
	}
	return prefix + t.name + "-" + member
}

// ownersOf returns the owners of a member at first.
func (t *tree) ownersOf(member string, objects map[string]*v1.ConfigMap) []*v1.ConfigMap {
	switch {
	case member == "leaf":
		return []*v1.ConfigMap{objects["middle"]}
	case member != "middle":
		return nil
	case t.choices.Outcome == Shared:
		return []*v1.ConfigMap{objects["owner"], objects["other"]}
	case t.choices.Outcome == Dangling:
		return []*v1.ConfigMap{objects["owner"], absent}
	}
	return []*v1.ConfigMap{objects["owner"]}
}

// policy is that of the deletion of the owner.
func (t *tree) policy() metav1.DeletionPropagation {
	switch {
	case t.choices.Outcome == Orphaned:
		return metav1.DeletePropagationOrphan
	case t.choices.Foreground:
		return metav1.DeletePropagationForeground
	}
	return metav1.DeletePropagationBackground
}

// awaitOutcome waits until the collector has done its work, and looks whether what has to stay exists.
func (t *tree) awaitOutcome(ctx context.Context, middle, leaf, owner, other *v1.ConfigMap) error {
	switch t.choices.Outcome {
	case Collected:
		return errors.Join(t.awaitGone(ctx, owner), t.awaitGone(ctx, middle), t.awaitGone(ctx, leaf))
	case Orphaned:
		return errors.Join(t.awaitGone(ctx, owner), t.awaitOwners(ctx, middle), t.awaitOwners(ctx, leaf, middle))
	case Shared:
		return errors.Join(t.awaitGone(ctx, owner), t.awaitOwners(ctx, middle, other), t.awaitOwners(ctx, leaf, middle))
	case Dangling:
	}
	return errors.Join(t.awaitOwners(ctx, middle, owner), t.awaitOwners(ctx, leaf, middle))
}

// newObject returns an object with the owners.
func newObject(namespace, name string, owners ...*v1.ConfigMap) *v1.ConfigMap {
	object := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	for _, owner := range owners {
		object.OwnerReferences = append(object.OwnerReferences, metav1.OwnerReference{
			APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, BlockOwnerDeletion: ptr.To(true),
		})
	}
	return object
}

// create creates an object with the owners. An object that an earlier request created counts.
func (t *tree) create(ctx context.Context, name string, owners ...*v1.ConfigMap) (created *v1.ConfigMap, err error) {
	err = t.do(ctx, "create "+name, func(ctx context.Context, client kubernetes.Interface) (err error) {
		if err := createNamespace(ctx, client, t.space); err != nil {
			return err
		}
		objects := client.CoreV1().ConfigMaps(t.space)
		created, err = objects.Create(ctx, newObject(t.space, name, owners...), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			created, err = objects.Get(ctx, name, metav1.GetOptions{})
		}
		return err
	})
	return created, err
}

// delete deletes an object that may be gone.
func (t *tree) delete(ctx context.Context, object *v1.ConfigMap, policy metav1.DeletionPropagation) error {
	return t.do(ctx, "delete "+object.Name, func(ctx context.Context, client kubernetes.Interface) error {
		err := client.CoreV1().ConfigMaps(t.space).Delete(ctx, object.Name, metav1.DeleteOptions{PropagationPolicy: &policy,
			Preconditions: &metav1.Preconditions{UID: preconditions(object.UID)}})
		return ignore(err, apierrors.IsNotFound, apierrors.IsConflict)
	})
}

// awaitGone waits until the object does not exist.
func (t *tree) awaitGone(ctx context.Context, object *v1.ConfigMap) error {
	what := "wait until " + object.Name + " is collected"
	return t.do(ctx, what, func(ctx context.Context, client kubernetes.Interface) error {
		now, err := client.CoreV1().ConfigMaps(t.space).Get(ctx, object.Name, metav1.GetOptions{})
		if err == nil && now.UID == object.UID {
			return errWaiting
		}
		return ignore(err, apierrors.IsNotFound)
	})
}

// awaitOwners waits until the object, which has to stay, has these owners only. An object that is gone is lost.
func (t *tree) awaitOwners(ctx context.Context, object *v1.ConfigMap, owners ...*v1.ConfigMap) error {
	what := "wait for the owners of " + object.Name
	return t.do(ctx, what, func(ctx context.Context, client kubernetes.Interface) error {
		now, err := client.CoreV1().ConfigMaps(t.space).Get(ctx, object.Name, metav1.GetOptions{})
		switch {
		case isGone(now, err, object):
			t.watch.collected(t.space+"/"+object.Name, t.choices)
			return nil
		case err != nil:
			return err
		case !hasOwners(now, owners):
			return errWaiting
		}
		return nil
	})
}

// isGone reports whether the answer to a read shows that the object was deleted.
func isGone(now *v1.ConfigMap, err error, object *v1.ConfigMap) bool {
	return apierrors.IsNotFound(err) || err == nil && (now.UID != object.UID || now.DeletionTimestamp != nil)
}

// hasOwners reports whether the object names exactly the owners.
func hasOwners(object *v1.ConfigMap, owners []*v1.ConfigMap) bool {
	named := map[types.UID]bool{}
	for _, reference := range object.OwnerReferences {
		named[reference.UID] = true
	}
	for _, owner := range owners {
		if !named[owner.UID] {
			return false
		}
	}
	return len(named) == len(owners)
}

// workOnTrees runs one tree after the other.
func (u *users) workOnTrees(ctx context.Context, user int, quit <-chan struct{}) {
	for n := 0; ctx.Err() == nil; n++ {
		select {
		case <-quit:
			return
		default:
		}
		done := make(chan struct{})
		t := u.beginTree(user, n)
		u.all.Go(func() {
			defer close(done)
			u.finish(t.lifecycle, t.run(ctx))
		})
		u.await(ctx, done, quit)
	}
}

// beginTree returns the n-th tree of a user. Those of before a restore of etcd are left alone.
func (u *users) beginTree(user, n int) *tree {
	u.mu.Lock()
	defer u.mu.Unlock()
	lc := u.lifecycle(Choices{Sort: Tree}, fmt.Sprintf("t%d-%d", user, n), fmt.Sprintf("trees-%d", u.epoch))
	u.active[lc] = true
	return &tree{lifecycle: lc, choices: NewTreeChoices(u.seed, user, n)}
}
