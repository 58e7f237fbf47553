// Package snapshots keeps VolumeSnapshots that volumes are made from: Protect adds
// the finalizer provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection
// before the driver is asked, and the controller executes
// [protection.DecideSnapshot]: it takes the finalizer off once no claim that
// names the snapshot waits for its volume. A snapshot is looked at when such a claim
// gets its volume or goes, and all that carry the finalizer are looked at every
// --snapshot-orphan-sweep-interval: the finalizer of a process that died, or of
// another program, is orphaned. Of snapshots only the metadata is read.
package snapshots
