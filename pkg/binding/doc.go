// Package binding decides which volume a claim is bound to, and the phases of both.
//
// Binding takes four writes. After a crash between two of them, the next reconciliation
// continues with the next write:
//
//	1  volume.spec.claimRef      the claim, by UID
//	2  volume.status.phase       Bound, so that pv-protection keeps the volume
//	3  claim.spec.volumeName     the volume, with the annotation bind-completed
//	4  claim.status              Bound, with capacity and access modes
//
// [DecideClaim] returns the next of these steps, or requests provisioning if no volume fits.
// [DecideVolume] decides the phase of a volume:
//
//	claimRef                                 phase
//	none, or without UID                     Available
//	none, and a claim was bound to it        unchanged, the claim's reconciler sets the claimRef
//	claim with the UID names the volume      Bound, if it was Released or Failed; otherwise the
//	                                         claim's reconciler sets Bound
//	claim with the UID is gone (live read)   Released, unless Failed
//	claim is bound to another volume         Released if dynamic with policy Delete,
//	                                         otherwise the claimRef is cleared
//	any, and a recycler pod scrubs           neither Available nor Bound until the pod has ended
//	claim with the UID names no volume       unchanged, the claim's reconciler binds the volume;
//	                                         Released if a dynamic volume with policy Delete is
//	                                         being deleted and was never Bound
//
// [DecideProvision] orders the steps of an in-tree plugin that provisions a volume.
//
// [Index] finds the best volume for a claim by binary search, reserves the volume for one
// worker, and wakes a waiting claim when a volume that satisfies the claim becomes free. The
// rules of matching are those of kube-controller-manager v1.36.
package binding
