package check

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/reclaim"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// deleteVolume checks a DeleteVolume call.
func (r *report) deleteVolume() {
	handle := r.step.Handle
	if r.before.disk(handle) == nil {
		if r.step.Faultless && slices.Contains(r.before.Deleted, handle) {
			r.add(DeletedTwice, "disk "+handle, "was deleted before, and DeleteVolume is called again")
		}
		return
	}
	recorded, shared := false, r.world.isShared(handle)
	for _, volume := range r.world.Volumes {
		if HandleOf(volume) == handle {
			recorded = true
			r.deletedRecorded(volume, handle, shared)
		}
	}
	if !recorded {
		r.deletedUnrecorded(handle)
	}
}

// deletedRecorded checks DeleteVolume of the disk of a volume.
func (r *report) deletedRecorded(volume *v1.PersistentVolume, handle string, shared bool) {
	relation, claim := r.world.relation(volume)
	phase := storage.PhaseOf(volume.Status.Phase)
	switch {
	case relation == storage.ClaimBound:
		r.add(DataLost, "disk "+handle, "is deleted while %s is bound to %s", nameOfClaim(claim), nameOfVolume(volume))
	case !isDelete(volume):
		r.add(DataLost, "disk "+handle, "is deleted while %s has the policy %s", nameOfVolume(volume),
			volume.Spec.PersistentVolumeReclaimPolicy)
	case shared && !phase.Released():
		r.add(DataLost, "disk "+handle, "is deleted while %s stands for it too, in phase %s", nameOfVolume(volume), phase)
	case !phase.Released():
		r.add(DeletedForUnreleased, "disk "+handle, "is deleted while %s is %s", nameOfVolume(volume), phase)
	case !reclaim.MayReclaim(relation, storage.HasProvisioner(volume), volume.DeletionTimestamp != nil):
		r.add(DeletedForUnreleased, "disk "+handle, "is deleted while the claim of %s may use it (claim %s)",
			nameOfVolume(volume), relation)
	}
	r.deletedAmid(volume, handle)
}

// deletedAmid checks that DeleteVolume does not come before what has to end first.
func (r *report) deletedAmid(volume *v1.PersistentVolume, handle string) {
	if slices.Contains(r.world.Attached, volume.Name) {
		r.add(DeletedAttached, "disk "+handle, "is deleted while %s is attached", nameOfVolume(volume))
	}
	entry := r.world.entryOf(refOf(volume))
	if entry != nil && entry.VolumeName() == volume.Name && entry.State == journal.Requested && entry.Unresolved == nil {
		r.add(DeletedWithEntry, "disk "+handle, "is deleted while the journal entry of claim %s/%s stands", entry.Namespace,
			entry.Name)
	}
}

// deletedUnrecorded checks DeleteVolume of a disk without a volume.
func (r *report) deletedUnrecorded(handle string) {
	disk := *r.before.disk(handle)
	entry := r.world.entryNaming(disk)
	switch {
	case slices.Contains(r.world.Kept, handle):
		r.add(DataLost, "disk "+handle, "is deleted though a user keeps it")
	case slices.Contains(r.world.Filled, handle):
		r.add(DataLost, "disk "+handle, "is discarded, and it is older than a restore of etcd")
	case entry == nil || entry.State != journal.Discarding:
		r.add(DeletedUnrecorded, "disk "+handle, "is deleted, and neither a PersistentVolume nor a discarding entry names it")
	case entry.CustodyBroken:
		r.add(BrokenCustody, "disk "+handle, "is deleted for the entry of claim %s/%s in broken custody", entry.Namespace,
			entry.Name)
	default:
		if claim := r.world.claim(entry.UID); claim != nil && claim.Spec.VolumeName != "" &&
			claim.Spec.VolumeName == entry.VolumeName() {
			r.add(DataLost, "disk "+handle, "is discarded while %s is bound to its volume", nameOfClaim(claim))
		}
	}
}

// createVolume checks a CreateVolume call.
func (r *report) createVolume() {
	name := r.step.Name
	had, has := r.before.named(name), r.after.named(name)
	if has > 1 || r.step.Faultless && had > 0 && !r.before.keeps(name) {
		r.add(CreatedTwice, "disk "+name, "was created before, and CreateVolume is called again")
	}
	if has > had {
		r.created(name)
	}
}

// created checks that a disk was created for a claim that needs it.
func (r *report) created(name string) {
	entry := r.world.entryNaming(Disk{Name: name})
	claim := r.world.claimFor(name, entry)
	switch {
	case claim == nil && entry == nil:
		r.add(CreatedUnwanted, "disk "+name, "is created, and neither its claim nor a journal entry exists")
	case claim == nil && entry.CustodyBroken:
		r.add(BrokenCustody, "disk "+name, "is created for a claim that is gone, by an entry in broken custody")
	case claim != nil && wasBound(claim, name):
		r.add(CreatedForBound, "disk "+name, "is created, and %s is %s", nameOfClaim(claim), claim.Status.Phase)
	}
	if entry == nil && r.step.Journaled {
		r.add(CreatedWithoutEntry, "disk "+name, "is created without a journal entry")
	}
}

// wasBound reports whether the claim is or was bound to the volume of the name, or to one that it does not name.
func wasBound(claim *v1.PersistentVolumeClaim, name string) bool {
	return !storage.NeverBound(claim) && (claim.Spec.VolumeName == name || claim.Spec.VolumeName == "")
}

// forgotten checks that every disk that was known still is.
func (r *report) forgotten() {
	gone(r.before.Volumes, r.after.Volumes, r.forgottenVolume)
	for i := range r.before.Entries {
		entry := &r.before.Entries[i]
		if i < len(r.after.Entries) && r.after.Entries[i].UID == entry.UID || r.after.entryOf(entry.UID) != nil {
			continue
		}
		r.suspect(entry.Handle, entry.VolumeName())
	}
	for i := range r.before.Calls {
		if call := &r.before.Calls[i]; call.Awaited && call.Kind == CreateVolume && !r.after.mayCreate(call.Name, true) {
			r.suspect("", call.Name)
		}
	}
	if r.step.Kind == CreateVolume {
		r.suspect("", r.step.Name)
	}
}

// forgottenVolume checks the disk of a volume that is gone. The disk is its user's if the
// policy was not Delete, or if no claim ever used the volume.
func (r *report) forgottenVolume(volume *v1.PersistentVolume) {
	if isDelete(volume) && refOf(volume) != "" {
		r.suspect(HandleOf(volume), "")
	}
}

// suspect reports the disks with the handle or the name that nobody knows.
func (r *report) suspect(handle, name string) {
	for i := range r.after.Disks {
		disk := r.after.Disks[i]
		if (handle != "" && disk.Handle == handle || name != "" && disk.Name == name) && !r.after.isKnown(disk) {
			r.forget(disk)
		}
	}
}

// forget reports a disk once.
func (r *report) forget(disk Disk) {
	for i := range r.found {
		if r.found[i].Rule == Forgotten && r.found[i].Object == "disk "+disk.Handle {
			return
		}
	}
	r.add(Forgotten, "disk "+disk.Handle,
		"exists, and no PersistentVolume, journal entry or awaited call names it any more")
}
