// Package binding decides which volume a claim gets, and the phases of both.
//
// A pair is bound in four writes, each of which may be the last before a crash;
// the next look continues where it stopped:
//
//	1  volume.spec.claimRef      names the claim, by UID
//	2  volume.status.phase       Bound, so that pv-protection holds it
//	3  claim.spec.volumeName     names the volume, with the annotation bind-completed
//	4  claim.status              Bound, with capacity and access modes
//
// [DecideClaim] takes those steps and asks for provisioning where nothing fits;
// [DecideVolume] keeps the phase of a volume true and lets go of a claim that is
// gone. Phases of a volume:
//
//	claimRef                           phase
//	none, or without UID               Available
//	claim with that UID names it       Bound
//	claim gone (read live)             Released, unless Failed
//	claim bound to another volume      Released if made for it with policy Delete, else given back
//
// [Index] finds the volume that satisfies a claim without a scan: of those with the
// fewest access modes the smallest. It keeps two workers from taking the same one,
// and knows which waiting claim a new volume can help. The rules are those of
// kube-controller-manager v1.36.
package binding
