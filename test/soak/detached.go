package main

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// detachedCount is the number of owners that each restore gives a dependent back.
const detachedCount = 4

// detached are trees whose middle object loses its owner after etcd was copied. A restore brings the reference
// back, the owner is then deleted with the policy Orphan, and the middle object has to stay.
type detached struct {
	trees []*detachedTree
}

type detachedTree struct {
	tree
	owner, middle *v1.ConfigMap
}

// create creates trees for the next restore.
func (d *detached) create(ctx context.Context, u *users) (err error) {
	for n := range detachedCount {
		f := &detachedTree{tree: tree{choices: TreeChoices{Outcome: Orphaned},
			lifecycle: u.lifecycle(Choices{Sort: Tree}, fmt.Sprintf("detached-%d-%d", u.epoch, n), longLivedSpace)}}
		if f.owner, err = f.create(ctx, f.nameOf("owner")); err != nil {
			return err
		}
		if f.middle, err = f.create(ctx, f.nameOf("middle"), f.owner); err != nil {
			return err
		}
		d.trees = append(d.trees, f)
	}
	return nil
}

// detach removes the references to the owners.
func (d *detached) detach(ctx context.Context) error {
	for _, f := range d.trees {
		if err := f.patch(ctx, f.middle, `{"metadata":{"ownerReferences":null}}`); err != nil {
			return err
		}
	}
	return nil
}

// orphan deletes the owners, which a restore brought back with the references to them.
func (d *detached) orphan(ctx context.Context, u *users) {
	for _, f := range d.trees {
		u.beside(ctx, f.lifecycle, func(ctx context.Context) error {
			if err := f.delete(ctx, f.owner, f.policy()); err != nil {
				return err
			}
			if err := f.awaitGone(ctx, f.owner); err != nil {
				return err
			}
			if err := f.patch(ctx, f.middle, `{"metadata":{"annotations":{"changed":"yes"}}}`); err != nil {
				return err
			}
			return f.awaitOwners(ctx, f.middle)
		})
	}
}

// lost returns the middle objects that are gone.
func (d *detached) lost(ctx context.Context, client kubernetes.Interface) (all []finding) {
	for _, f := range d.trees {
		now, err := client.CoreV1().ConfigMaps(f.space).Get(ctx, f.middle.Name, metav1.GetOptions{})
		if isGone(now, err, f.middle) {
			all = append(all, finding{text: fmt.Sprintf(
				"object %s is deleted: a restore of etcd gave it an owner back, which was then deleted with the policy Orphan",
				f.middle.Name)})
		}
	}
	return all
}

// patch changes an object that may be gone.
func (t *tree) patch(ctx context.Context, object *v1.ConfigMap, body string) error {
	return t.do(ctx, "change "+object.Name, func(ctx context.Context, client kubernetes.Interface) error {
		_, err := client.CoreV1().ConfigMaps(t.space).
			Patch(ctx, object.Name, types.MergePatchType, []byte(body), metav1.PatchOptions{})
		return ignore(err, apierrors.IsNotFound)
	})
}
