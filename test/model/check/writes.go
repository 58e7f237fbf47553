package check

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/protection"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// createdVolume checks a PersistentVolume that a program created.
func (r *report) createdVolume(volume *v1.PersistentVolume) {
	if !r.step.Actor.isOurs() {
		return
	}
	claim := r.world.claim(refOf(volume))
	if waits := claim != nil && storage.NeverBound(claim); !waits && slices.Contains(r.before.Kept, HandleOf(volume)) {
		r.add(KeptRecorded, nameOfVolume(volume), "records disk %s, which a user keeps", HandleOf(volume))
	}
	switch protected := isReclaimed(volume); {
	case protected && !isDelete(volume):
		r.add(FirstWrite, nameOfVolume(volume), "is created with policy %s and the finalizer of its reclaimer",
			volume.Spec.PersistentVolumeReclaimPolicy)
	case !protected && isDelete(volume) && r.step.Honor:
		r.add(FirstWrite, nameOfVolume(volume), "is created with policy Delete without the finalizer of its reclaimer")
	}
}

// isReclaimed reports whether a finalizer keeps the volume until it is reclaimed.
func isReclaimed(volume *v1.PersistentVolume) bool {
	return finalizer.Has(volume.Finalizers, finalizer.External) || finalizer.Has(volume.Finalizers, finalizer.InTree)
}

// changedVolume checks a write of a PersistentVolume.
func (r *report) changedVolume(old, now *v1.PersistentVolume) {
	if r.step.Actor.isOurs() {
		r.ownership(old, now)
		if isReclaimed(old) && !isReclaimed(now) {
			r.unreclaimed(now)
		}
	}
	r.changedClaimRef(old, now)
	before, after := storage.PhaseOf(old.Status.Phase), storage.PhaseOf(now.Status.Phase)
	if !before.Released() && after.Released() && (r.world.isBound(old) || r.world.isCompleted(old)) {
		r.add(ReleasedEarly, nameOfVolume(now), "becomes %s while its claim is bound to it", after)
	}
	if finalizer.Has(old.Finalizers, finalizer.VolumeProtection) &&
		!finalizer.Has(now.Finalizers, finalizer.VolumeProtection) {
		r.unprotected(old)
	}
}

// ownership checks that the program changed only what is its own.
func (r *report) ownership(old, now *v1.PersistentVolume) {
	name := nameOfVolume
	r.volumeFinalizers(old, now)
	if key := r.foreignMetadata(&old.ObjectMeta, &now.ObjectMeta, volumeKeys); key != "" {
		r.add(ForeignMetadata, name(now), "had its label or annotation %s changed by %s", key, r.step.Actor)
	}
	if old.Spec.PersistentVolumeReclaimPolicy != now.Spec.PersistentVolumeReclaimPolicy {
		r.add(PolicyChanged, name(now), "had its policy %s, and %s wrote %s", old.Spec.PersistentVolumeReclaimPolicy,
			r.step.Actor, now.Spec.PersistentVolumeReclaimPolicy)
	} else if HandleOf(old) != HandleOf(now) {
		r.add(PolicyChanged, name(now), "had its handle %q changed to %q by %s", HandleOf(old), HandleOf(now), r.step.Actor)
	}
	if old.DeletionTimestamp == nil && now.DeletionTimestamp != nil {
		r.deletedVolume(old)
	}
}

// volumeFinalizers checks the finalizers that a program of ours wrote to a volume.
func (r *report) volumeFinalizers(old, now *v1.PersistentVolume) {
	if !r.ownsFinalizers(old.Finalizers, now.Finalizers, now.Spec.CSI == nil) {
		r.add(ForeignFinalizer, nameOfVolume(now), "had the finalizers %v, and %s wrote %v", old.Finalizers, r.step.Actor,
			now.Finalizers)
	}
	added := finalizer.Has(now.Finalizers, finalizer.External) && !finalizer.Has(old.Finalizers, finalizer.External)
	if added && (!isDelete(old) || old.Status.Phase != v1.VolumeBound) {
		r.add(FinalizerMisplaced, nameOfVolume(now), "gets the provisioner's finalizer in phase %s with policy %s",
			old.Status.Phase, old.Spec.PersistentVolumeReclaimPolicy)
	}
}

// deletedVolume checks that a volume that a program of ours deletes was to be reclaimed at the
// last live read, and that its disk is gone. A policy that a user sets after DeleteVolume
// cannot bring the disk back, so it does not count; nor does a claimRef that a user removes then: no claim must get
// the volume.
func (r *report) deletedVolume(old *v1.PersistentVolume) {
	read := old
	if found := find(r.world.Volumes, nil, old, 0); found != nil {
		read = found
	}
	handle := HandleOf(old)
	exists := r.before.disk(handle) != nil
	gone := !exists && slices.Contains(r.before.Deleted, handle)
	if !isDelete(read) && !gone || !isReleased(read, gone) || r.world.isBound(read) {
		r.add(ObjectDeleted, nameOfVolume(old), "is deleted by %s with policy %s in phase %s", r.step.Actor,
			read.Spec.PersistentVolumeReclaimPolicy, read.Status.Phase)
	} else if exists && !r.before.isUsers(handle) {
		r.add(ObjectDeleted, nameOfVolume(old), "is deleted by %s while disk %s exists", r.step.Actor, handle)
	}
}

// isReleased reports whether the phase of the volume says so, or its disk is gone and it refers to no claim.
func isReleased(volume *v1.PersistentVolume, gone bool) bool {
	return storage.PhaseOf(volume.Status.Phase).Released() || gone && refOf(volume) == ""
}

// unreclaimed checks that a volume that loses the finalizer of its reclaimer has no disk. A
// volume that refers to no claim has nothing to be reclaimed.
func (r *report) unreclaimed(volume *v1.PersistentVolume) {
	handle := HandleOf(volume)
	if r.step.Honor && isDelete(volume) && refOf(volume) != "" && r.before.disk(handle) != nil &&
		!r.before.isUsers(handle) {
		r.add(FinalizerRemovedEarly, nameOfVolume(volume), "loses the finalizer of its reclaimer while disk %s exists",
			handle)
	}
}

// changedClaimRef checks the claim that a volume refers to.
func (r *report) changedClaimRef(old, now *v1.PersistentVolume) {
	from, to := refOf(old), refOf(now)
	if from == to || from == "" || !r.step.Actor.runsLoops() {
		return
	}
	relation, _ := r.world.relation(old)
	recycled := old.Spec.PersistentVolumeReclaimPolicy == v1.PersistentVolumeReclaimRecycle &&
		storage.PhaseOf(old.Status.Phase).Released()
	switch {
	case to != "":
		r.add(WrongBinding, nameOfVolume(now), "referred to claim UID %s, and now refers to %s", from, to)
	case relation != storage.ClaimElsewhere && !recycled:
		r.add(WrongBinding, nameOfVolume(now), "is %s and no longer refers to its claim (claim %s)", old.Status.Phase,
			relation)
	}
}

// unprotected checks that no claim is bound to a volume that loses pv-protection.
func (r *report) unprotected(volume *v1.PersistentVolume) {
	if _, claim := r.world.relation(volume); r.world.isBound(volume) {
		r.add(ChangedDeletionOrder, nameOfVolume(volume), "loses pv-protection while %s is bound to it", nameOfClaim(claim))
	}
}

// goneVolume checks a volume whose deletion a program finished.
func (r *report) goneVolume(old *v1.PersistentVolume) {
	if r.step.Actor.isOurs() {
		if !r.ownsFinalizers(old.Finalizers, nil, old.Spec.CSI == nil) {
			r.add(ForeignFinalizer, nameOfVolume(old), "had the finalizers %v, and %s removed them", old.Finalizers,
				r.step.Actor)
		}
		if old.DeletionTimestamp == nil {
			r.deletedVolume(old)
		}
		if isReclaimed(old) {
			r.unreclaimed(old)
		}
	}
	if finalizer.Has(old.Finalizers, finalizer.VolumeProtection) {
		r.unprotected(old)
	}
}

// changedClaim checks a write of a PersistentVolumeClaim.
func (r *report) changedClaim(old, now *v1.PersistentVolumeClaim) {
	if r.step.Actor.isOurs() {
		r.claimOwnership(old, now)
		r.lostClaim(old, now)
	}
	if old.Spec.VolumeName != "" && old.Spec.VolumeName != now.Spec.VolumeName {
		r.add(WrongBinding, nameOfClaim(now), "named volume %s, and now names %q", old.Spec.VolumeName, now.Spec.VolumeName)
	}
	if now.Status.Phase == v1.ClaimBound && old.Status.Phase != v1.ClaimBound {
		r.twoClaims(now)
	}
	if finalizer.Has(old.Finalizers, finalizer.ClaimProtection) &&
		!finalizer.Has(now.Finalizers, finalizer.ClaimProtection) {
		r.unprotectedClaim(old)
	}
}

// lostClaim checks that the volume of a claim that becomes Lost is gone, or refers to another claim.
func (r *report) lostClaim(old, now *v1.PersistentVolumeClaim) {
	if now.Status.Phase != v1.ClaimLost || old.Status.Phase == v1.ClaimLost {
		return
	}
	for _, volume := range r.world.Volumes {
		if volume.Name == now.Spec.VolumeName && refOf(volume) == now.UID {
			r.add(WrongBinding, nameOfClaim(now), "becomes Lost, and %s refers to it", nameOfVolume(volume))
		}
	}
}

// claimOwnership checks that the program changed only what is its own.
func (r *report) claimOwnership(old, now *v1.PersistentVolumeClaim) {
	if held := r.holdsClaim(old, now); held != "" {
		r.add(ClaimHeld, nameOfClaim(now), "is kept by the finalizer %s, which %s added", held, r.step.Actor)
	} else if !r.ownsFinalizers(old.Finalizers, now.Finalizers, false) {
		r.add(ForeignFinalizer, nameOfClaim(now), "had the finalizers %v, and %s wrote %v", old.Finalizers, r.step.Actor,
			now.Finalizers)
	}
	if key := r.foreignMetadata(&old.ObjectMeta, &now.ObjectMeta, claimKeys); key != "" {
		r.add(ForeignMetadata, nameOfClaim(now), "had its label or annotation %s changed by %s", key, r.step.Actor)
	}
	if old.DeletionTimestamp == nil && now.DeletionTimestamp != nil {
		r.add(ObjectDeleted, nameOfClaim(now), "is deleted by %s", r.step.Actor)
	}
}

// twoClaims checks that no other claim is Bound to the volume of the claim.
func (r *report) twoClaims(claim *v1.PersistentVolumeClaim) {
	for _, other := range r.after.Claims {
		if other.UID != claim.UID && other.Status.Phase == v1.ClaimBound && other.Spec.VolumeName == claim.Spec.VolumeName {
			r.add(WrongBinding, nameOfClaim(claim), "becomes Bound to volume %s, as %s is", claim.Spec.VolumeName,
				nameOfClaim(other))
		}
	}
}

// unprotectedClaim checks that no pod uses a claim that loses pvc-protection.
func (r *report) unprotectedClaim(claim *v1.PersistentVolumeClaim) {
	for _, pod := range r.world.Pods {
		if protection.Uses(pod, claim) {
			r.add(ChangedDeletionOrder, nameOfClaim(claim), "loses pvc-protection while Pod %s/%s uses it", pod.Namespace,
				pod.Name)
		}
	}
}

// goneClaim checks a claim whose deletion a program finished.
func (r *report) goneClaim(old *v1.PersistentVolumeClaim) {
	if r.step.Actor.isOurs() {
		if !r.ownsFinalizers(old.Finalizers, nil, false) {
			r.add(ForeignFinalizer, nameOfClaim(old), "had the finalizers %v, and %s removed them", old.Finalizers, r.step.Actor)
		}
		if old.DeletionTimestamp == nil {
			r.add(ObjectDeleted, nameOfClaim(old), "is deleted by %s", r.step.Actor)
		}
	}
	if finalizer.Has(old.Finalizers, finalizer.ClaimProtection) {
		r.unprotectedClaim(old)
	}
}

// removedEntries checks the journal entries that a program removed.
func (r *report) removedEntries() {
	for i := range r.before.Entries {
		entry := &r.before.Entries[i]
		if i < len(r.after.Entries) && r.after.Entries[i].UID == entry.UID || r.after.entryOf(entry.UID) != nil {
			continue
		}
		if !r.isEnded(entry) {
			r.add(EntryRemovedEarly, "journal entry of claim "+entry.Namespace+"/"+entry.Name,
				"is removed while a disk or a call of the name %s exists", entry.VolumeName())
		}
	}
}

// isEnded reports whether a journal entry has served its purpose.
func (r *report) isEnded(entry *journal.Entry) bool {
	for _, s := range []*Snapshot{r.before, r.world} {
		if claim := s.claim(entry.UID); claim != nil && !storage.NeverBound(claim) {
			return true
		}
		for _, volume := range s.Volumes {
			if volume.Name == entry.VolumeName() && storage.RecordOf(volume, entry.UID) == storage.RecordPresent {
				return true
			}
		}
	}
	if entry.State == journal.Discarding && r.before.disk(entry.Handle) == nil {
		return true
	}
	return !r.before.leads(entry.VolumeName()) && !r.before.mayCreate(entry.VolumeName(), false)
}
