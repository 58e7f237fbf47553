// Package reclaim decides the next step that honours the reclaim policy of one
// PersistentVolume (KEP-2644). Data is destroyed by one case only of each
// function, never by a default, and only in a state that was confirmed by live
// reads of the volume and of its claim.
//
// [Decide] is the provisioner's: CSI volumes and the finalizer External (EX).
//
//	policy  phase              EX   decision
//	Delete  Bound              no   Protect
//	Delete  Bound, deleting    no   MarkVolume, then Wait: pv-protection holds it (see [Held])
//	Delete  Bound              yes  Wait
//	Delete  Released, Failed   any  Confirm, then DeleteVolume, DeleteObject, Unprotect, CloseMark
//	Delete  Released, deleting no   Wait: already reclaimed, unless the mark says pending
//	Delete  Available, deleting yes Unprotect: nobody claimed it, there is nothing to reclaim
//	Retain, Recycle            yes  Unprotect
//	other                           Wait
//
// [DecideInTree] is the pv-controller's: volumes of in-tree plugins that are
// Released or Failed, their claim gone.
//
//	policy   plugin             decision
//	Delete   deletes            Confirm, then DeleteVolume, DeleteObject, Unprotect
//	Delete   missing            Fail
//	Recycle  recycles           Confirm, then StartRecycler; once it has succeeded FinishRecycling, MakeAvailable
//	Recycle  none               Fail
//	Delete, Recycle, data shared, recycler busy, pod still uses it: Wait
//	Retain, external, migrated  Wait
//
// A recycler pod ([RecyclerOf]) is believed only if it carries the mark of this
// volume and this claim. [DecideMarks] says which finalizers and which migrated-to
// annotation a volume must carry (finalizer InTree, IT), [FirstFinalizers] with
// which it is made, [Held] when pv-protection has to stand in for them.
//
// With the gate HonorPVReclaimPolicy off, both keep today's behaviour, its leak
// included: a volume that is deleted before its claim is not reclaimed.
//
// The package does no I/O, knows no API object and no clock.
package reclaim
