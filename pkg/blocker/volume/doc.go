// Package volume decides why the deletion of a volume, a claim, a snapshot or an attachment
// waits, and whether it will come. It knows neither clock nor API server: "exeunt why" reads
// the cluster into the small states of this package.
//
//	[StageOf]      PersistentVolume: what its deletion waits for first
//	[Reclaim]      its driver has to delete the disk
//	[Plugin]       an in-tree plugin has to delete the disk
//	[InUse]        claim, snapshot, class: users that keep a finalizer
//	[Attachment]   VolumeAttachment
//	[Content]      content of a snapshot or of a group of snapshots
//	[RemoveUnclaimed]  the provisioner's finalizer on a deleted volume that names no claim
//	[Late]         the disk of a volume that was deleted before it got its finalizer
//	[Takeover]     the disk of a volume that only the provisioner of Exeunt has marked
//	[FeatureOf]    whether a provisioner serves the finalizer of KEP-2644, by image and arguments
//
// Invariants, tested over every state: stuck needs evidence; what was not seen never makes a
// verdict stuck, and waiting only what a program was seen alive for.
package volume
