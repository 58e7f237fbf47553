// Package volume keeps the phase of volumes true, releases them when their claim
// is gone, and writes the marks and the protection that go with that: it executes
// [reclaim.DecideMarks], [binding.DecideVolume] and [protection.DecideVolume], in
// this order. The last one has a loop of its own, named as in kube-controller-manager.
// Volumes that are over are handed to another loop, with workers of its
// own, that executes [reclaim.DecideInTree]: no plugin delays a phase.
//
//	loop           woken by                                        writes
//	volumes        volumes, claims, a deletion that succeeded      marks, phases, claimRef; pv-protection with Released
//	pvprotection   the loop above, once marks and phase are right  pv-protection
//	reclaims       the first loop, recycler pods, pods that finish phase Failed, in-tree finalizer, recycler pods;
//	               with a claim, a volume that shared the data     deletes the object; claimRef of a recycled volume
//
// Before a plugin is called, volume, claim and recycler pod are read live. Success
// is remembered by the UIDs of volume and claim; a failure is tried
// again with backoff, however often the volume is woken meanwhile. That the rights to
// recycle are missing is such a failure.
//
// A volume that is being deleted loses pv-protection in the same write that says
// Released: the finalizer of whoever reclaims it (External or InTree) holds it
// from there on. Where none can, pv-protection stays: [reclaim.Held]. Nothing is released without a live read of the claim by UID.
package volume
