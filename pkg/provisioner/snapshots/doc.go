// Package snapshots protects VolumeSnapshots that volumes are restored from, with the
// finalizer provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection.
//
// [Controller.Protect] adds the finalizer before the CreateVolume call. The
// reconciler removes the finalizer once no claim that names the snapshot waits for its
// volume: [protection.DecideSnapshot]. A snapshot is reconciled when such a claim gets its
// volume or is deleted; events of claims that another process serves are left to that
// process. All snapshots with the finalizer are reconciled every
// --snapshot-orphan-sweep-interval, because a provisioner that crashed, or another program,
// may have left its finalizer. Only the metadata of snapshots is read.
package snapshots
