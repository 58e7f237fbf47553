// Package deletion reclaims the volumes of one driver: it executes the decisions of
// [external.Decide]. No other package of the provisioner writes the finalizer External or
// deletes a volume, volumes without a PersistentVolume included ([Controller.Discard]).
//
// A volume is reconciled when it changes, when one of its VolumeAttachments is deleted, and
// when a volume with the same disk is deleted. Before DeleteVolume, the volume and its claim
// are read live. The success of DeleteVolume is remembered by the UID of the volume: later
// only the API writes are retried.
//
// A bound volume that was deleted before its finalizer was added gets the annotation
// exeunt.io/reclaim: pending. The pv-controller keeps pv-protection until the value is done.
// Another controller ignores the annotation; then an event names the data that was left.
//
// The loop is the same with the gate HonorPVReclaimPolicy off: [external.Decide] differs.
package deletion
