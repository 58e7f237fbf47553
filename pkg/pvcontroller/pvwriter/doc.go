// Package pvwriter writes PersistentVolumes for the pv-controller. Every field is
// written by one file of this package; the reconcilers decide, and call it.
//
//	field                                        file            written when
//	spec.claimRef                                claimref.go     a claim is bound to the volume (BindClaim), or the
//	annotation pv.kubernetes.io/bound-by-controller              volume is given back (ClearClaim)
//	status.phase, status.message                 phase.go        the phase changes (SetPhase)
//	finalizer kubernetes.io/pv-protection        protection.go   alone (AddProtection, RemoveProtection), or removed
//	                                                             by SetPhase in the write of the phase
//	finalizer kubernetes.io/pv-controller        ownership.go    the in-tree plugin becomes or is no longer
//	annotation pv.kubernetes.io/migrated-to                      responsible (SetOwnership), or has deleted the
//	                                                             volume (RemoveReclaimFinalizers)
//	annotation pv.kubernetes.io/provisioned-by   create.go       an in-tree plugin provisions the volume (Create),
//	                                                             with the first values of the fields above
//
// The finalizer external-provisioner.volume.kubernetes.io/finalizer and the annotation
// exeunt.io/reclaim belong to the provisioner. The pv-controller removes that finalizer
// in one case: an in-tree plugin has become responsible for the volume (ownership.go).
//
// Every write is a JSON patch that tests the values its decision used: always the UID,
// and the phase, the claim's UID, the list of finalizers or the whole version.
package pvwriter
