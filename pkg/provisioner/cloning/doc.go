// Package cloning protects claims that other claims are cloned from, with the finalizer
// provisioner.storage.kubernetes.io/cloning-protection.
//
// [Controller.Protect] adds the finalizer before the CreateVolume call. The
// reconciler removes the finalizer of a claim that is being deleted once no clone waits for
// its volume: [protection.IsUnneededCloneSource]. A claim is reconciled when the claim or one
// of its clones changes.
package cloning
