// Package pvwriter writes PersistentVolumes for the pv-controller. Every field is written
// by one file of this package. The reconcilers decide what to write.
//
//	field                                         file           written when
//	spec.claimRef, annotation                     claimref.go    a claim is bound to the volume (SetClaimRef), is
//	pv.kubernetes.io/bound-by-controller                         bound to another one, or the volume was recycled
//	                                                             (ClearClaimRef)
//	status.phase, status.message                  phase.go       the phase changes (SetPhase)
//	finalizer kubernetes.io/pv-protection         protection.go  alone (AddProtection, RemoveProtection), or in the
//	                                                             write of the phase
//	finalizer kubernetes.io/pv-controller,        metadata.go    another component becomes responsible for the
//	annotation pv.kubernetes.io/migrated-to                      volume (SetMetadata), or the in-tree plugin has
//	                                                             deleted it (RemoveReclaimFinalizers)
//	annotation pv.kubernetes.io/provisioned-by    create.go      an in-tree plugin provisions the volume (Create),
//	                                                             with the first values of the fields above
//
// The finalizer external-provisioner.volume.kubernetes.io/finalizer and the annotation
// exeunt.io/reclaim belong to the provisioner. The pv-controller removes that finalizer only
// from volumes of in-tree plugins (metadata.go).
//
// Every write is a JSON patch that tests the values its decision used: always the UID,
// and the phase, the claim's UID, the list of finalizers or the whole version.
package pvwriter
