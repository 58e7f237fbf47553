package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
)

// sweep deletes all objects that came back with a restored etcd, except the long-lived claims: nobody
// else knows them. Each is a lifecycle of its own.
func (u *users) sweep(ctx context.Context, random *rand.Rand) {
	claims, volumes := u.restored()
	for _, name := range u.podsWithout(claims) {
		u.sweepPod(ctx, name)
	}
	spaces := map[string]bool{}
	for _, claim := range claims {
		if claim.Namespace != space {
			spaces[claim.Namespace] = true
			continue
		}
		u.sweepClaim(ctx, claim, volumes[claim.Spec.VolumeName], random.IntN(2) == 0)
		delete(volumes, claim.Spec.VolumeName)
	}
	for name := range spaces {
		lc := u.lifecycle(Choices{Sort: Spaced}, name, name)
		u.beside(ctx, lc, func(ctx context.Context) error { return lc.deleteSpace(ctx, nil, nil) })
	}
	for _, volume := range volumes {
		u.sweepVolume(ctx, volume)
	}
}

// restored returns the claims and volumes that exist, except those of long-lived claims.
func (u *users) restored() (claims []*v1.PersistentVolumeClaim, volumes map[string]*v1.PersistentVolume) {
	u.view.mu.Lock()
	defer u.view.mu.Unlock()
	volumes = map[string]*v1.PersistentVolume{}
	for name, volume := range u.view.volumes {
		if ref := volume.Spec.ClaimRef; ref == nil || ref.Namespace != longLivedSpace {
			volumes[name] = volume
		}
	}
	for _, claim := range u.view.claims {
		if claim.Namespace != longLivedSpace {
			claims = append(claims, claim)
		}
	}
	return claims, volumes
}

// podsWithout returns the names of pods that exist, and have none of the claims: a pod may come back while it is
// being deleted, when its claim was gone already. Nobody else ends it, for no kubelet and no podgc runs here.
func (u *users) podsWithout(claims []*v1.PersistentVolumeClaim) (names []string) {
	used := map[string]bool{}
	for _, claim := range claims {
		used[claim.Namespace+"/"+claim.Name] = true
	}
	u.view.mu.Lock()
	defer u.view.mu.Unlock()
	for _, pod := range u.view.pods {
		if pod.Namespace == space && !used[space+"/"+pod.Name] {
			names = append(names, pod.Name)
		}
	}
	return names
}

// sweepPod ends a pod.
func (u *users) sweepPod(ctx context.Context, name string) {
	lc := u.lifecycle(Choices{Sort: Dynamic}, name, space)
	lc.keys.add("pod " + space + "/" + name)
	u.beside(ctx, lc, func(ctx context.Context) error { return lc.deletePod(ctx, space, name) })
}

// sweepClaim deletes a claim and, if the claim is bound, its volume.
func (u *users) sweepClaim(ctx context.Context, claim *v1.PersistentVolumeClaim, volume *v1.PersistentVolume,
	volumeFirst bool) {
	choices := Choices{Sort: Dynamic, Order: ClaimFirst}
	if volumeFirst {
		choices.Order = VolumeFirst
	}
	lc := u.lifecycle(choices, claim.Name, claim.Namespace)
	lc.keys.add("claim "+claim.Namespace+"/"+claim.Name, "disk pvc-"+string(claim.UID), "pv pvc-"+string(claim.UID))
	u.beside(ctx, lc, func(ctx context.Context) error {
		if err := lc.deletePod(ctx, claim.Namespace, claim.Name); err != nil {
			return err
		}
		if volume == nil {
			return lc.deleteEarly(ctx, claim)
		}
		lc.keys.add("pv "+volume.Name, "disk "+handleOf(volume))
		return lc.sweepBoth(ctx, claim, volume)
	})
}

// sweepBoth deletes claim and volume. A kept disk may be gone already.
func (lc *lifecycle) sweepBoth(ctx context.Context, claim *v1.PersistentVolumeClaim,
	volume *v1.PersistentVolume) error {
	if volume.Spec.ClaimRef == nil {
		lc.Order = VolumeFirst // it may never be bound
	}
	if !isDeletedForGood(volume) {
		if err := lc.setPolicy(ctx, volume.Name, v1.PersistentVolumeReclaimDelete); err != nil {
			return err
		}
	}
	if err := lc.requestDeletions(ctx, claim, volume); err != nil {
		return err
	}
	if err := lc.untilClaimGone(ctx, claim); err != nil {
		return err
	}
	return lc.sweepDisk(ctx, volume)
}

// isDeletedForGood reports whether the volume was deleted with another policy than Delete. No
// finalizer can be added to it any more, so its disk stays whatever its policy becomes.
func isDeletedForGood(volume *v1.PersistentVolume) bool {
	return volume.DeletionTimestamp != nil && volume.Spec.PersistentVolumeReclaimPolicy != v1.PersistentVolumeReclaimDelete
}

// mayStay reports whether the disk may outlive its volume: the volume may be deleted before it was bound, or was deleted
// with another policy than Delete.
func mayStay(volume *v1.PersistentVolume) bool {
	isUnbound := volume.Status.Phase != v1.VolumeBound && volume.Status.Phase != v1.VolumeReleased &&
		volume.Status.Phase != v1.VolumeFailed
	return volume.Spec.ClaimRef == nil || isDeletedForGood(volume) || isUnbound && lacksFinalizer(volume)
}

// sweepDisk waits until the volume is gone, and deletes a disk that stays.
func (lc *lifecycle) sweepDisk(ctx context.Context, volume *v1.PersistentVolume) error {
	if err := lc.untilVolumeGone(ctx, volume); err != nil || !mayStay(volume) {
		return err
	}
	return lc.do(ctx, "delete disk "+handleOf(volume), func(ctx context.Context, _ kubernetes.Interface) error {
		return lc.world.disks.remove(ctx, handleOf(volume))
	})
}

// sweepVolume deletes a volume whose claim is not there. The deletion of a volume that never
// had a claim keeps the disk, which the user deletes.
func (u *users) sweepVolume(ctx context.Context, volume *v1.PersistentVolume) {
	lc := u.lifecycle(Choices{Sort: Static}, volume.Name, space)
	lc.keys.add("pv "+volume.Name, "disk "+handleOf(volume))
	u.beside(ctx, lc, func(ctx context.Context) error {
		if volume.Spec.ClaimRef != nil && !isDeletedForGood(volume) {
			if err := lc.setPolicy(ctx, volume.Name, v1.PersistentVolumeReclaimDelete); err != nil {
				return err
			}
		} else if err := lc.deleteVolume(ctx, volume); err != nil { // perhaps once more
			return err
		}
		return lc.sweepDisk(ctx, volume)
	})
}

// beside runs a lifecycle beside those of the users.
func (u *users) beside(ctx context.Context, lc *lifecycle, run func(context.Context) error) {
	u.add(lc)
	lc.name = fmt.Sprintf("swept-%d-%s", u.epoch, strings.TrimPrefix(lc.name, "swept-"))
	u.all.Go(func() { u.finish(lc, run(ctx)) })
}
