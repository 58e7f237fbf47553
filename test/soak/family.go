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

// Story is what becomes of a family.
type Story string

// The stories of families.
const (
	// Collected: the owner is deleted, and all its dependents go.
	Collected Story = "collected"
	// Orphaned: the owner is deleted with the policy Orphan, and its dependents stay.
	Orphaned Story = "orphaned"
	// Shared: the owner is deleted, and the middle object has another owner, which stays.
	Shared Story = "shared"
	// Dangling: the middle object names an absent owner beside the owner, which stays.
	Dangling Story = "dangling"
)

var stories = []Story{Collected, Orphaned, Shared, Dangling}

// FamilyChoices is what a user does with one family.
type FamilyChoices struct {
	Story Story
	// Foreground deletes the owner in the foreground.
	Foreground bool
	// Denied: a webhook denies the first writes to the middle object. Undone: its metadata is restored after each.
	Denied, Undone bool
}

// NewFamilyChoices returns the choices for the n-th family of a user. They depend on nothing else.
func NewFamilyChoices(seed uint64, user, n int) FamilyChoices {
	random := rand.New(rand.NewPCG(seed, uint64(user+1000)<<32|uint64(n)))
	return FamilyChoices{
		Story:      stories[random.IntN(len(stories))],
		Foreground: random.IntN(2) == 0, Denied: random.IntN(4) == 0, Undone: random.IntN(8) == 0,
	}
}

// family is an owner, a middle object that depends on the owner, and a leaf that depends on the middle object.
type family struct {
	*lifecycle
	choices FamilyChoices
}

// absent is an owner that does not exist.
var absent = &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "absent", UID: "00000000-0000-0000-0000-00000000dead"}}

// errWaiting: the collector has not done its work yet.
var errWaiting = errors.New("not yet")

// run creates the family, has the collector work, and deletes what is left.
func (f *family) run(ctx context.Context) error {
	objects := map[string]*v1.ConfigMap{}
	for _, name := range []string{"owner", "other", "middle", "leaf"} {
		object, err := f.create(ctx, f.nameOf(name), f.ownersOf(name, objects)...)
		if err != nil {
			return err
		}
		objects[name] = object
	}
	owner, other, middle, leaf := objects["owner"], objects["other"], objects["middle"], objects["leaf"]
	if f.choices.Story != Dangling {
		if err := f.delete(ctx, owner, f.policy()); err != nil {
			return err
		}
	}
	if err := f.awaitStory(ctx, middle, leaf, owner, other); err != nil {
		return err
	}
	for _, object := range []*v1.ConfigMap{owner, other, middle} {
		if err := f.delete(ctx, object, metav1.DeletePropagationBackground); err != nil {
			return err
		}
	}
	return f.awaitGone(ctx, leaf)
}

// nameOf returns the name of a member of the family.
func (f *family) nameOf(member string) string {
	prefix := ""
	if member == "middle" {
		prefix = Choices{Denied: f.choices.Denied, Undone: f.choices.Undone}.prefix()
	}
	return prefix + f.name + "-" + member
}

// ownersOf returns the owners of a member at first.
func (f *family) ownersOf(member string, objects map[string]*v1.ConfigMap) []*v1.ConfigMap {
	switch {
	case member == "leaf":
		return []*v1.ConfigMap{objects["middle"]}
	case member != "middle":
		return nil
	case f.choices.Story == Shared:
		return []*v1.ConfigMap{objects["owner"], objects["other"]}
	case f.choices.Story == Dangling:
		return []*v1.ConfigMap{objects["owner"], absent}
	}
	return []*v1.ConfigMap{objects["owner"]}
}

// policy is that of the deletion of the owner.
func (f *family) policy() metav1.DeletionPropagation {
	switch {
	case f.choices.Story == Orphaned:
		return metav1.DeletePropagationOrphan
	case f.choices.Foreground:
		return metav1.DeletePropagationForeground
	}
	return metav1.DeletePropagationBackground
}

// awaitStory waits until the collector has done its work, and looks whether what has to stay exists.
func (f *family) awaitStory(ctx context.Context, middle, leaf, owner, other *v1.ConfigMap) error {
	switch f.choices.Story {
	case Collected:
		return errors.Join(f.awaitGone(ctx, owner), f.awaitGone(ctx, middle), f.awaitGone(ctx, leaf))
	case Orphaned:
		return errors.Join(f.awaitGone(ctx, owner), f.awaitOwners(ctx, middle), f.awaitOwners(ctx, leaf, middle))
	case Shared:
		return errors.Join(f.awaitGone(ctx, owner), f.awaitOwners(ctx, middle, other), f.awaitOwners(ctx, leaf, middle))
	case Dangling:
	}
	return errors.Join(f.awaitOwners(ctx, middle, owner), f.awaitOwners(ctx, leaf, middle))
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
func (f *family) create(ctx context.Context, name string, owners ...*v1.ConfigMap) (created *v1.ConfigMap, err error) {
	err = f.do(ctx, "create "+name, func(ctx context.Context, client kubernetes.Interface) (err error) {
		if err := createNamespace(ctx, client, f.space); err != nil {
			return err
		}
		objects := client.CoreV1().ConfigMaps(f.space)
		created, err = objects.Create(ctx, newObject(f.space, name, owners...), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			created, err = objects.Get(ctx, name, metav1.GetOptions{})
		}
		return err
	})
	return created, err
}

// delete deletes an object that may be gone.
func (f *family) delete(ctx context.Context, object *v1.ConfigMap, policy metav1.DeletionPropagation) error {
	return f.do(ctx, "delete "+object.Name, func(ctx context.Context, client kubernetes.Interface) error {
		err := client.CoreV1().ConfigMaps(f.space).Delete(ctx, object.Name, metav1.DeleteOptions{PropagationPolicy: &policy,
			Preconditions: &metav1.Preconditions{UID: preconditions(object.UID)}})
		return ignore(err, apierrors.IsNotFound, apierrors.IsConflict)
	})
}

// awaitGone waits until the object does not exist.
func (f *family) awaitGone(ctx context.Context, object *v1.ConfigMap) error {
	what := "wait until " + object.Name + " is collected"
	return f.do(ctx, what, func(ctx context.Context, client kubernetes.Interface) error {
		now, err := client.CoreV1().ConfigMaps(f.space).Get(ctx, object.Name, metav1.GetOptions{})
		if err == nil && now.UID == object.UID {
			return errWaiting
		}
		return ignore(err, apierrors.IsNotFound)
	})
}

// awaitOwners waits until the object, which has to stay, has these owners only. An object that is gone is lost.
func (f *family) awaitOwners(ctx context.Context, object *v1.ConfigMap, owners ...*v1.ConfigMap) error {
	what := "wait for the owners of " + object.Name
	return f.do(ctx, what, func(ctx context.Context, client kubernetes.Interface) error {
		now, err := client.CoreV1().ConfigMaps(f.space).Get(ctx, object.Name, metav1.GetOptions{})
		switch {
		case isGone(now, err, object):
			f.watch.collected(f.space+"/"+object.Name, f.choices)
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

// raise runs one family after the other.
func (u *users) raise(ctx context.Context, user int, quit <-chan struct{}) {
	for n := 0; ctx.Err() == nil; n++ {
		select {
		case <-quit:
			return
		default:
		}
		done := make(chan struct{})
		f := u.beginFamily(user, n)
		u.all.Go(func() {
			defer close(done)
			u.finish(f.lifecycle, f.run(ctx))
		})
		u.await(ctx, done, quit)
	}
}

// beginFamily returns the n-th family of a user. Those of before a restore of etcd are left alone.
func (u *users) beginFamily(user, n int) *family {
	u.mu.Lock()
	defer u.mu.Unlock()
	lc := u.lifecycle(Choices{Sort: Family}, fmt.Sprintf("f%d-%d", user, n), fmt.Sprintf("families-%d", u.epoch))
	u.active[lc] = true
	return &family{lifecycle: lc, choices: NewFamilyChoices(u.seed, user, n)}
}
