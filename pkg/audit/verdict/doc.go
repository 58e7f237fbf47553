// Package verdict decides what an audit says about one volume of the storage system, and
// about one PersistentVolume. It deletes nothing and recommends no deletion: that no
// PersistentVolume refers to a volume is no proof that nobody wants the volume.
//
//	volume                                                        verdict
//	a PersistentVolume of any cluster has the handle              Known
//	attached to a node, or a VolumeAttachment names it            Doubtful, Attached
//	source of a snapshot or a group snapshot                      Doubtful, SnapshotSource
//	source of a listed volume or of a request in the journal      Doubtful, CloneSource
//	inline volume of a pod, or a handle of a kubelet              Doubtful, InlineVolume
//	handle differs from a used handle in the spelling only        Doubtful, HandleAlike
//	named by an unresolved or unreadable journal entry            Doubtful, Unresolved
//	named for a claim that exists, or by another journal entry    Doubtful, CreationInFlight
//	a list is incomplete or wrong                                 Doubtful, Unresolved
//	listed once only                                              Doubtful, SeenOnce
//	listed twice, and nothing above                               Orphan
//
// A volume is an orphan only if both lists of volumes were complete and every list of
// references was read: what was not seen never counts as absent.
package verdict
