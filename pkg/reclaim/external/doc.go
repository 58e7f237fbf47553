// Package external decides how the provisioner reclaims one CSI volume (KEP-2644, "CSI
// Driver volumes"), and when it adds and removes the finalizer External (EX).
//
//	policy  phase                        EX   decision
//	Delete  Bound                        no   AddFinalizer
//	Delete  Bound, deleting              no   SetStatusPending, then Wait
//	Delete  Bound                        yes  Wait
//	Delete  Released, Failed             any  Confirm, then DeleteVolume, DeleteObject, RemoveFinalizer, SetStatusDone
//	Delete  Released, Failed, deleting   no   Wait: already reclaimed, unless the status is pending
//	Delete  Released, Failed, attached   any  Wait
//	Delete  Released, Failed, shared     any  Wait: another PersistentVolume has the same handle
//	Delete  Pending, Available, deleting yes  RemoveFinalizer, if the volume refers to no claim
//	Delete  not Bound, after DeleteVolume any DeleteObject, RemoveFinalizer, SetStatusDone
//	Retain, Recycle                      yes  RemoveFinalizer
//	other                                     Wait
//
// With the gate HonorPVReclaimPolicy off, the finalizer is removed and never added, and a
// volume that is deleted before its claim is not reclaimed.
//
// DeleteVolume is decided only for a state that was read live (Confirmed), with policy
// Delete and a claim that [reclaim.MayReclaim] accepts. [Secret.Use] decides whether the
// driver is called although the secret of the volume is missing.
package external
