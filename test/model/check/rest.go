package check

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/protection"
	"github.com/exeunt-io/exeunt/pkg/reclaim"
	"github.com/exeunt-io/exeunt/pkg/reclaim/external"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// Wanted is how a cluster at rest is meant to be.
type Wanted struct {
	// Driver is the CSI driver that answers.
	Driver string
	// Honor is the gate HonorPVReclaimPolicy of the provisioner.
	Honor bool
	// Unresolved: unresolved journal entries may remain for an administrator, for an upstream program
	// took part, a user restored a backup, a gate was switched, or the driver refuses some requests for ever.
	Unresolved bool
	// Classes are the storage classes that the driver can provision now.
	Classes []string
	// Exempt are the UIDs of objects that users left in a state of their own choice.
	Exempt []types.UID
}

// AtRest returns what must not remain once every program has done all it can: without
// faults, with a driver that answers. Finalizers of others keep an object as long as their
// owners like, but finalizers of ours must not.
func AtRest(s *Snapshot, w Wanted) []Violation {
	r := rest{Snapshot: s, wanted: w, report: report{before: s, after: s, world: s}}
	for _, volume := range s.Volumes {
		if !slices.Contains(w.Exempt, volume.UID) {
			r.volume(volume)
		}
	}
	for _, claim := range s.Claims {
		if !slices.Contains(w.Exempt, claim.UID) {
			r.claimAtRest(claim)
		}
	}
	for i := range s.Entries {
		r.entry(&s.Entries[i])
	}
	r.disks()
	return r.report.found
}

// rest collects the violations of a cluster at rest.
type rest struct {
	*Snapshot
	wanted Wanted
	report report
}

// volume checks one PersistentVolume.
func (r *rest) volume(volume *v1.PersistentVolume) {
	relation, claim := r.relation(volume)
	switch {
	case volume.DeletionTimestamp != nil:
		r.deletedVolume(volume, relation, claim)
	case isDelete(volume) && !r.isRefused(volume) && isOver(relation, storage.HasProvisioner(volume)):
		r.report.add(Unreclaimed, nameOfVolume(volume), "has the policy Delete in phase %s and still exists (claim %s)",
			volume.Status.Phase, relation)
	case !isProtected(volume):
		r.report.add(Unprotected, nameOfVolume(volume), "has no finalizer pv-protection")
	}
	r.phase(volume, relation)
	r.reclaimFinalizer(volume, relation)
	if handle := HandleOf(volume); relation == storage.ClaimBound && handle != "" && r.disk(handle) == nil &&
		!slices.Contains(r.GivenUp, handle) {
		r.report.add(DiskMissing, nameOfVolume(volume), "is used by %s, and its disk %s does not exist", nameOfClaim(claim),
			handle)
	}
}

// deletedVolume checks a PersistentVolume that is being deleted. A claim that is being
// deleted too decides nothing until it is gone.
func (r *rest) deletedVolume(volume *v1.PersistentVolume, relation storage.ClaimRelation,
	claim *v1.PersistentVolumeClaim) {
	isOver := storage.HasProvisioner(volume) || storage.PhaseOf(volume.Status.Phase).Released()
	neverBound := relation == storage.ClaimUnbound && isOver && claim.DeletionTimestamp == nil
	unused := relation == storage.ClaimNone || reclaim.IsReleased(relation) || neverBound
	if ours := firstOfOurs(volume.Finalizers); ours != "" && unused && !r.isRefused(volume) {
		r.report.add(StuckVolume, nameOfVolume(volume),
			"is being deleted and still has the finalizer %s (phase %s, policy %s, claim %s)",
			ours, volume.Status.Phase, volume.Spec.PersistentVolumeReclaimPolicy, relation)
	}
}

// isRefused reports whether DeleteVolume waits, as the events VolumeHandleShared and
// VolumeDelete say.
func (r *rest) isRefused(volume *v1.PersistentVolume) bool {
	return isDelete(volume) && (r.isShared(HandleOf(volume)) || slices.Contains(r.Attached, volume.Name))
}

// isOver reports whether a volume with policy Delete has to be reclaimed: its claim is gone,
// or is bound elsewhere and the volume was provisioned for it.
func isOver(relation storage.ClaimRelation, dynamic bool) bool {
	return relation == storage.ClaimGone || relation == storage.ClaimElsewhere && dynamic
}

// isProtected reports whether pv-protection keeps the volume, or the finalizer of the
// provisioner that is about to delete it.
func isProtected(volume *v1.PersistentVolume) bool {
	return finalizer.Has(volume.Finalizers, finalizer.VolumeProtection) ||
		storage.PhaseOf(volume.Status.Phase).Released() && isDelete(volume) &&
			finalizer.Has(volume.Finalizers, finalizer.External)
}

// firstOfOurs returns the first finalizer of this project in the list, "" for none.
func firstOfOurs(finalizers []string) string {
	for _, name := range finalizers {
		if _, ours := finalizer.HolderOf(name); ours {
			return name
		}
	}
	return ""
}

// phase checks that the phase of the volume is that of its relation to its claim.
func (r *rest) phase(volume *v1.PersistentVolume, relation storage.ClaimRelation) {
	phase := storage.PhaseOf(volume.Status.Phase)
	right := true
	switch relation {
	case storage.ClaimNone:
		right = phase == storage.PhaseAvailable || volume.DeletionTimestamp != nil
	case storage.ClaimBound:
		right = phase == storage.PhaseBound
	case storage.ClaimGone:
		right = phase.Released()
	case storage.ClaimElsewhere:
		right = phase.Released() && isDelete(volume) && storage.HasProvisioner(volume)
	case storage.ClaimUnbound, storage.ClaimLost, storage.ClaimUnread:
	}
	if !right {
		r.report.add(WrongPhase, nameOfVolume(volume), "is %s (claim %s)", volume.Status.Phase, relation)
	}
}

// reclaimFinalizer checks the finalizer of the provisioner on a volume of its driver.
func (r *rest) reclaimFinalizer(volume *v1.PersistentVolume, relation storage.ClaimRelation) {
	if !external.Owns(r.wanted.Driver, volume) {
		return
	}
	has := finalizer.Has(volume.Finalizers, finalizer.External)
	may := r.wanted.Honor && isDelete(volume)
	switch {
	case has && !may:
		r.report.add(WrongFinalizer, nameOfVolume(volume), "has the provisioner's finalizer with the policy %s (gate %v)",
			volume.Spec.PersistentVolumeReclaimPolicy, r.wanted.Honor)
	case has || !may || relation != storage.ClaimBound:
	case volume.DeletionTimestamp == nil:
		r.report.add(WrongFinalizer, nameOfVolume(volume),
			"is bound with policy Delete and has no finalizer of the provisioner")
	case !r.wanted.Unresolved:
		r.marked(volume)
	}
}

// marked checks that a volume that was deleted before its finalizer was added is marked.
func (r *rest) marked(volume *v1.PersistentVolume) {
	if reclaim.StatusOf(volume) == reclaim.StatusNone {
		r.report.add(WrongFinalizer, nameOfVolume(volume),
			"is being deleted, bound with policy Delete, and has neither the finalizer of the provisioner nor the annotation %s",
			reclaim.Annotation)
	}
}

// claimAtRest checks one PersistentVolumeClaim.
func (r *rest) claimAtRest(claim *v1.PersistentVolumeClaim) {
	if claim.DeletionTimestamp == nil {
		if !finalizer.Has(claim.Finalizers, finalizer.ClaimProtection) {
			r.report.add(Unprotected, nameOfClaim(claim), "has no finalizer pvc-protection")
		}
		r.binding(claim)
		return
	}
	if finalizer.Has(claim.Finalizers, finalizer.ClaimProtection) && !r.isUsed(claim) {
		r.report.add(StuckClaim, nameOfClaim(claim), "is being deleted, no pod uses it, and it still has pvc-protection")
	}
	if finalizer.Has(claim.Finalizers, finalizer.CloneSource) && !r.isCloned(claim) {
		r.report.add(StuckClaim, nameOfClaim(claim),
			"is being deleted, no clone waits for it, and it still has the finalizer of a source")
	}
}

// isUsed reports whether a pod uses the claim.
func (r *rest) isUsed(claim *v1.PersistentVolumeClaim) bool {
	return slices.ContainsFunc(r.Pods, func(pod *v1.Pod) bool { return protection.Uses(pod, claim) })
}

// binding checks that the claim is Bound if it can be.
func (r *rest) binding(claim *v1.PersistentVolumeClaim) {
	if claim.Status.Phase == v1.ClaimBound {
		r.boundTo(claim)
		return
	}
	if storage.NeverBound(claim) && slices.Contains(r.wanted.Classes, storage.ClaimClass(claim)) {
		r.report.add(NotBound, nameOfClaim(claim), "is %s, and class %s can be provisioned", claim.Status.Phase,
			storage.ClaimClass(claim))
		return
	}
	for _, volume := range r.Volumes {
		if refOf(volume) == claim.UID && volume.DeletionTimestamp == nil && claim.Spec.VolumeName == volume.Name {
			r.report.add(NotBound, nameOfClaim(claim), "is %s, and %s refers to it", claim.Status.Phase, nameOfVolume(volume))
		}
	}
}

// boundTo checks that the volume of a Bound claim refers to the claim.
func (r *rest) boundTo(claim *v1.PersistentVolumeClaim) {
	for _, volume := range r.Volumes {
		if volume.Name == claim.Spec.VolumeName {
			if refOf(volume) != claim.UID {
				r.report.add(NotBound, nameOfClaim(claim), "is Bound to %s, which refers to another claim", nameOfVolume(volume))
			}
			return
		}
	}
	r.report.add(NotBound, nameOfClaim(claim), "is Bound to volume %s, which does not exist", claim.Spec.VolumeName)
}

// entry checks one journal entry. It may be left to an administrator if its claim is gone, and its
// user may have kept the volume.
func (r *rest) entry(entry *journal.Entry) {
	isClaim := func(claim *v1.PersistentVolumeClaim) bool { return claim.UID == entry.UID }
	mayBeKept := entry.Announced && !slices.ContainsFunc(r.Claims, isClaim)
	if entry.Unresolved == nil || !r.wanted.Unresolved && !entry.CustodyBroken && !mayBeKept {
		r.report.add(EntryLeft, "journal entry of claim "+entry.Namespace+"/"+entry.Name, "for volume %s is left",
			entry.VolumeName())
	}
}

// disks checks that every disk is recorded, and that kept disks exist.
func (r *rest) disks() {
	for _, disk := range r.Disks {
		if !r.isKnown(disk) || r.isAbandoned(disk) {
			r.report.add(Leaked, "disk "+disk.Handle, "exists, and nothing will delete it")
		}
	}
	for _, handle := range r.Kept {
		if r.disk(handle) == nil {
			r.report.add(DiskMissing, "disk "+handle, "does not exist, and its user keeps it")
		}
	}
}

// isAbandoned reports whether the only volume of the disk is being deleted with policy
// Delete, its claim is gone, and no finalizer of ours is left: only others keep it.
func (r *rest) isAbandoned(disk Disk) bool {
	volume := r.volumeWith(disk.Handle)
	if volume == nil || volume.DeletionTimestamp == nil || !isDelete(volume) || slices.Contains(r.GivenUp, disk.Handle) {
		return false
	}
	relation, _ := r.relation(volume)
	return isOver(relation, storage.HasProvisioner(volume)) && firstOfOurs(volume.Finalizers) == "" &&
		!r.isShared(disk.Handle) && !slices.Contains(r.wanted.Exempt, volume.UID)
}
