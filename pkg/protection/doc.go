// Package protection decides when the finalizers that protect objects in use are added and
// removed. Each finalizer has a decision of its own:
//
//	[DecideClaim]: kubernetes.io/pvc-protection
//	deleting  finalizer  pods                             decision
//	no        no         any                              ProtectClaim
//	yes       yes        one uses the claim               KeepClaim
//	yes       yes        none in the cache uses it        ConfirmClaim, by a live list of pods
//	yes       yes        none in the live list uses it    UnprotectClaim
//	other                                                 KeepClaim
//
//	[DecideVolume]: kubernetes.io/pv-protection
//	deleting  finalizer  phase                            decision
//	no        no         any, not being reclaimed         ProtectVolume
//	yes       yes        Bound                            KeepVolume
//	yes       yes        other, still to be reclaimed     KeepVolume
//	yes       yes        other                            UnprotectVolume
//	other                                                 KeepVolume
//
//	[IsUnneededCloneSource]: provisioner.storage.kubernetes.io/cloning-protection
//	deleting  finalizer  claims that wait for their clone finalizer is removed
//	yes       yes        none                             yes
//	other                                                 no
//
//	[DecideSnapshot]: provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection
//	finalizer  claims that wait for their volume          decision
//	yes        none in the cache                          ConfirmSnapshot, by a live list of claims
//	yes        none in the live list                      UnprotectSnapshot
//	other                                                 KeepSnapshot
//
// A pod uses a claim from its scheduling until its object is deleted, finished pods
// included. For a generic ephemeral volume, a pod that the kubelet has terminated no longer
// counts. A volume is still to be reclaimed as long as the finalizer of its reclaimer is
// missing: pkg/reclaim/plugin, NeedsProtection. It is being reclaimed once it is Released
// with policy Delete and its provisioner's finalizer keeps it; the write of that phase removes
// pv-protection ([RemovesWithPhase]).
package protection
