// Package controller holds what all reconcilers of both programs share: the workqueue
// loop, event handlers, filtered informers, per-key locks, guarded patches, the versions
// of own writes, and events.
//
// Each object field has one writer. In the pv-controller:
//
//	reconciler  writes                                            triggered by
//	claim       claim spec and status; while it binds a pair,     claims, classes, new volumes
//	            the volume's claimRef and phase Bound
//	volume      all other phases of a volume, its claimRef when   volumes, deleted or rebound
//	            the volume becomes available again, its           claims, recycler pods
//	            annotations, pv-protection, in-tree deletion and
//	            recycling
//	protection  pvc-protection of claims                          deleted claims and pods
//
// The provisioner alone adds the finalizer External, writes the annotation
// exeunt.io/reclaim, and creates and deletes CSI volumes. Its loops provisioning and
// deletion share [KeyLocks] by volume name.
//
// No reconciler waits for another: each writes its own decision, and the others see the
// write through their watches.
package controller
