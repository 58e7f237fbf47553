// Package provisioner provisions volumes with in-tree plugins, in the workqueue
// "provisioning". Package claim enqueues the claims, so a slow or failing plugin does
// not delay binding.
//
// Per claim: read the claim and its PersistentVolume from the API server, let
// [binding.DecideProvision] decide, execute. The order of the writes makes every volume
// that a plugin created known to the API server:
//
//	1  PersistentVolume   created, phase Pending, with its finalizers
//	2  plugin             creates the volume
//	3  PersistentVolume   phase Bound; the claim is bound by package claim
//
// After a crash the next leader continues, or the volume is reclaimed once its claim is
// gone. The claim carries no finalizer for provisioning.
package provisioner
