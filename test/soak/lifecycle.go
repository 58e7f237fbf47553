package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/exeunt-io/exeunt/test/sandbox"
)

const (
	// retryDelay is the time between two attempts of a user.
	retryDelay = 250 * time.Millisecond
	// attempt is the deadline of one request of a user.
	attempt = 10 * time.Second
)

// lifecycle is what one user does with one volume, or with the volumes of one namespace, until
// nothing is left of it.
type lifecycle struct {
	Choices
	world *world
	view  *view
	watch *watcher
	// name of claims and disks, space the namespace.
	name, space string
	// volumes counts the volumes that were created and deleted.
	volumes int

	step atomic.Value
	// keys of the objects, for their history.
	keys *keySet
}

// doing records the step, for the report of a lifecycle that does not end, and pauses.
func (lc *lifecycle) doing(ctx context.Context, step string) {
	lc.step.Store(step)
	sandbox.Pause(ctx, lc.Pause)
}

// at returns the current step.
func (lc *lifecycle) at() string {
	step, _ := lc.step.Load().(string)
	return step
}

// do repeats a request until it succeeds.
func (lc *lifecycle) do(ctx context.Context, step string, request func(ctx context.Context,
	client kubernetes.Interface) error) error {
	lc.doing(ctx, step)
	for {
		limited, cancel := context.WithTimeout(ctx, attempt)
		err := request(limited, lc.world.client())
		cancel()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) &&
			!apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause) {
			return fmt.Errorf("%s: %w", step, err)
		}
		lc.step.Store(step + ": " + err.Error())
		sandbox.Pause(ctx, retryDelay)
	}
}

// until waits for a condition, which is called with the lock of the view held.
func (lc *lifecycle) until(ctx context.Context, step string, holds func() bool) error {
	lc.step.Store("waiting until " + step)
	return lc.view.await(ctx, holds)
}

// run creates and deletes the volume.
func (lc *lifecycle) run(ctx context.Context) error {
	switch lc.Sort {
	case Spaced:
		return lc.runSpaced(ctx)
	case Clone:
		return lc.runClone(ctx)
	case Dynamic, Waiting, Static, Tree:
	}
	claim, err := lc.create(ctx, lc.name)
	if err != nil {
		return err
	}
	if lc.Early {
		return lc.deleteEarly(ctx, claim)
	}
	return lc.bindAndDelete(ctx, claim)
}

// create creates the claim and, for a static volume, disk and volume before it.
func (lc *lifecycle) create(ctx context.Context, name string) (*v1.PersistentVolumeClaim, error) {
	claim := newClaim(lc.space, name, lc.class())
	if lc.Sort == Static {
		if err := lc.createStatic(ctx, claim); err != nil {
			return nil, err
		}
	}
	return lc.createClaim(ctx, claim)
}

// class returns the class of the claim.
func (lc *lifecycle) class() string {
	switch {
	case lc.Sort == Waiting:
		return classWait
	case lc.Retain:
		return classRetain
	}
	return classDelete
}

// deleteEarly deletes a claim that may not be bound yet. Its volume, if there is one, is
// looked for at the end of the run.
func (lc *lifecycle) deleteEarly(ctx context.Context, claim *v1.PersistentVolumeClaim) error {
	if lc.Sort == Waiting {
		if err := lc.selectNode(ctx, claim); err != nil {
			return err
		}
	}
	if err := lc.deleteClaim(ctx, claim); err != nil {
		return err
	}
	return lc.untilClaimGone(ctx, claim)
}

// bind waits until claim and volume are bound.
func (lc *lifecycle) bind(ctx context.Context, claim *v1.PersistentVolumeClaim) (*v1.PersistentVolume, error) {
	if lc.Sort == Waiting {
		selecting, stop := context.WithCancel(ctx)
		defer stop()
		go lc.keepSelecting(selecting, claim)
	}
	var volume *v1.PersistentVolume
	err := lc.until(ctx, "claim "+claim.Name+" is bound", func() bool {
		now := lc.view.claims[claim.Namespace+"/"+claim.Name]
		if now == nil || now.UID != claim.UID || now.Status.Phase != v1.ClaimBound {
			return false
		}
		volume = lc.view.volumes[now.Spec.VolumeName]
		return volume != nil && volume.Status.Phase == v1.VolumeBound
	})
	if err != nil {
		return nil, err
	}
	lc.keys.add("pv "+volume.Name, "disk "+handleOf(volume), "disk "+volume.Name)
	if lc.Sort == Waiting && lc.Retain {
		return volume, lc.setPolicy(ctx, volume.Name, v1.PersistentVolumeReclaimRetain)
	}
	return volume, nil
}

// delete deletes claim and volume in the order of the choices, and waits for their end.
func (lc *lifecycle) delete(ctx context.Context, claim *v1.PersistentVolumeClaim, volume *v1.PersistentVolume) error {
	if lc.Pod {
		if err := lc.createPod(ctx, claim); err != nil {
			return err
		}
	}
	if lc.Flip == FlipBound {
		if err := lc.setPolicy(ctx, volume.Name, policyOf(!lc.Retain)); err != nil {
			return err
		}
	}
	if err := lc.requestDeletions(ctx, claim, volume); err != nil {
		return err
	}
	if lc.Again {
		if err := lc.repeat(ctx, claim); err != nil {
			return err
		}
	}
	if err := lc.untilClaimGone(ctx, claim); err != nil {
		return err
	}
	if err := lc.flipReleased(ctx, volume); err != nil {
		return err
	}
	return lc.end(ctx, volume)
}

// requestDeletions deletes claim, volume and pod.
func (lc *lifecycle) requestDeletions(ctx context.Context, claim *v1.PersistentVolumeClaim,
	volume *v1.PersistentVolume) error {
	if lc.world.careful && lc.Order != ClaimFirst {
		if err := lc.awaitProtection(ctx, volume); err != nil {
			return err
		}
	}
	if lc.Order == VolumeFirst {
		if err := lc.deleteVolume(ctx, volume); err != nil {
			return err
		}
	}
	if err := lc.deleteClaim(ctx, claim); err != nil {
		return err
	}
	if lc.Order == AtOnce {
		if err := lc.deleteVolume(ctx, volume); err != nil {
			return err
		}
	}
	if lc.Flip == FlipRacing {
		if err := lc.setPolicy(ctx, volume.Name, v1.PersistentVolumeReclaimRetain); err != nil {
			return err
		}
	}
	if lc.Pod {
		return lc.deletePod(ctx, claim.Namespace, claim.Name)
	}
	return nil
}

// flipReleased changes the policy to Delete once the claim is gone.
func (lc *lifecycle) flipReleased(ctx context.Context, volume *v1.PersistentVolume) error {
	if lc.Flip != FlipReleased && lc.Flip != FlipRacing {
		return nil
	}
	return lc.setPolicy(ctx, volume.Name, v1.PersistentVolumeReclaimDelete)
}

// end waits until the volume is gone, and checks its disk.
func (lc *lifecycle) end(ctx context.Context, volume *v1.PersistentVolume) error {
	if lc.Kept() {
		return lc.endKept(ctx, volume)
	}
	if err := lc.untilVolumeGone(ctx, volume); err != nil {
		return err
	}
	lc.volumes++
	return nil
}

// endKept deletes a released volume with policy Retain, and then its disk, which must exist.
func (lc *lifecycle) endKept(ctx context.Context, volume *v1.PersistentVolume) error {
	if lc.Order == ClaimFirst {
		err := lc.until(ctx, "volume "+volume.Name+" is released", func() bool {
			now := lc.view.volumes[volume.Name]
			return now == nil || now.Status.Phase == v1.VolumeReleased
		})
		if err != nil {
			return err
		}
		if err := lc.deleteVolume(ctx, volume); err != nil {
			return err
		}
	}
	if err := lc.untilVolumeGone(ctx, volume); err != nil {
		return err
	}
	handle := handleOf(volume)
	err := lc.do(ctx, "delete kept disk "+handle, func(ctx context.Context, _ kubernetes.Interface) error {
		exists, err := lc.world.disks.has(handle)
		switch {
		case err != nil:
			return err
		case !exists && !lc.world.disks.removedByUser(handle):
			lc.watch.report(handle, "the policy of "+volume.Name+" was Retain, and the disk is gone")
			return nil
		}
		return lc.world.disks.remove(ctx, handle)
	})
	if err == nil {
		lc.volumes++
	}
	return err
}

// repeat creates a claim of the same name once the first one is gone, and deletes it too.
func (lc *lifecycle) repeat(ctx context.Context, claim *v1.PersistentVolumeClaim) error {
	again := lifecycle{Choices: Choices{Sort: Dynamic, Order: ClaimFirst, Pause: lc.Pause}, world: lc.world, view: lc.view,
		watch: lc.watch, name: claim.Name, space: lc.space, keys: lc.keys}
	if lc.Sort == Waiting {
		again.Sort = Waiting
	}
	err := again.run(ctx)
	lc.step.Store("again: " + again.at())
	lc.volumes += again.volumes
	return err
}

// policyOf returns the policy that keeps the data, or not.
func policyOf(retain bool) v1.PersistentVolumeReclaimPolicy {
	if retain {
		return v1.PersistentVolumeReclaimRetain
	}
	return v1.PersistentVolumeReclaimDelete
}

// untilClaimGone waits until the claim of this UID does not exist.
func (lc *lifecycle) untilClaimGone(ctx context.Context, claim *v1.PersistentVolumeClaim) error {
	return lc.until(ctx, "claim "+claim.Name+" is gone", func() bool {
		_, exists := lc.view.claimUIDs[claim.UID]
		return !exists
	})
}

// untilVolumeGone waits until the PersistentVolume does not exist.
func (lc *lifecycle) untilVolumeGone(ctx context.Context, volume *v1.PersistentVolume) error {
	return lc.until(ctx, "volume "+volume.Name+" is gone", func() bool {
		now := lc.view.volumes[volume.Name]
		return now == nil || now.UID != volume.UID
	})
}

// ignore returns nil for an error that the condition accepts.
func ignore(err error, accepts ...func(error) bool) error {
	for _, accepted := range accepts {
		if accepted(err) {
			return nil
		}
	}
	return err
}

// preconditions restrict a deletion to one UID.
func preconditions(uid types.UID) *types.UID { return &uid }

// isAborted reports whether a lifecycle ended because etcd is restored.
func isAborted(err error) bool { return errors.Is(err, errAborted) }
