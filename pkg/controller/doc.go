// Package controller holds what all reconcilers share: the worker loop, the
// memory of own writes, and the reporting of decisions as events.
//
// The contract between the reconcilers of the pv-controller:
//
//	who         writes                                            because of
//	claim       claim spec and status; a volume's claimRef and    claims, classes, volumes that come
//	            phase Bound, while it binds the pair
//	volume      a volume's phases otherwise, its claimRef when    volumes, claims that go or bind elsewhere
//	            it is given back, its marks, pv-protection;   pods that recycle
//	            what in-tree plugins delete and recycle
//	protection  pvc-protection of claims                          claims being deleted, pods that go
//
// The provisioner alone writes the finalizer External and the annotation
// exeunt.io/reclaim, makes and deletes CSI
// volumes; its two loops, provisioning and deletion, share [KeyLocks] by volume
// name.
// No reconciler waits for another: each writes what it decides, and the API
// server's watch tells the others.
package controller
