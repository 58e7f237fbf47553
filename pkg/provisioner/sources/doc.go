// Package sources protects what volumes are created from, with a finalizer: claims that other claims
// are cloned from ([Clones], provisioner.storage.kubernetes.io/cloning-protection), and
// VolumeSnapshots that volumes are restored from ([Snapshots],
// provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection).
//
// Protect adds the finalizer before the CreateVolume call, and a lock per source orders this with the
// removal of the finalizer. The finalizer of a claim that is being deleted is removed once no clone
// waits for its volume: [protection.IsUnneededCloneSource]. A claim is reconciled when the claim or
// one of its clones changes.
//
// The finalizer of a snapshot is removed once no claim that names the snapshot waits for its volume:
// [protection.DecideSnapshot]. A snapshot is reconciled when such a claim gets its volume or is
// deleted; events of claims that another process serves are left to that process. All snapshots with
// the finalizer are reconciled every --snapshot-orphan-sweep-interval, because a provisioner that
// crashed, or another program, may have left its finalizer. Only the metadata of snapshots is read.
package sources
