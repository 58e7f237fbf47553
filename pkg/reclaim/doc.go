// Package reclaim decides the next step that honours the reclaim policy of one
// PersistentVolume (KEP-2644). Data is destroyed by one case only of each
// function, never by a default, and only in a state that was confirmed by live
// reads of the volume and of its claim.
//
// [Decide] is the provisioner's: CSI volumes and the finalizer External (EX).
//
//	policy  phase              EX   decision
//	Delete  Bound              no   Protect, unless the volume is being deleted already
//	Delete  Bound              yes  Wait
//	Delete  Released, Failed   any  Confirm, then DeleteVolume, DeleteObject, Unprotect
//	Delete  Released, deleting no   Wait: already reclaimed
//	Delete  Available, deleting yes Unprotect: nobody claimed it, there is nothing to reclaim
//	Retain, Recycle            yes  Unprotect
//	other                           Wait
//
// [DecideInTree] is the pv-controller's: volumes of in-tree plugins, whose claim
// is gone. [DecideMarks] says which finalizers and which migrated-to annotation
// such a volume must carry (finalizer InTree, IT).
//
// With the gate HonorPVReclaimPolicy off, both keep today's behaviour, its leak
// included: a volume that is deleted before its claim is not reclaimed.
//
// The package does no I/O, knows no API object and no clock.
package reclaim
