// Package upstream has the programs of Kubernetes that this project replaces, written for the
// model: the three loops of kube-controller-manager v1.36 ([Controllers]) and csi-provisioner
// v6.3 ([Sidecar]). The model runs them beside our programs and in place of them. Their
// caches, their order of reads and writes, and what a restart loses are those of the real
// programs; the code is not. The scenarios of test/e2e/differential, which the real
// kube-controller-manager passes, are run with these programs in a test.
//
// Left out: migration, default classes, selected nodes that no longer exist, topology,
// VolumeAttributesClass, recycling and provisioning by in-tree plugins, generic ephemeral
// volumes, secrets of classes, events and metrics. A plugin deletes host-path volumes; the
// path is the handle of the disk.
//
// Upstream reconciles every cached object again from time to time: such a key always waits
// for a time, and a cluster is at rest once reconciling these keys changes nothing. The
// claim loop and the volume loop of csi-provisioner work at the same time, also on one claim
// and its volume.
//
// Known bugs, and how the programs show them; "gate" is HonorPVReclaimPolicy:
//
//	bug                        gate  what happens
//	external-provisioner#486   any   the sidecar dies between CreateVolume and the PersistentVolume,
//	                                 and the claim is deleted: the disk leaks
//	external-provisioner#1469  any   CreateVolume is repeated while the volume is deleted; the
//	                                 dying PersistentVolume counts as recorded: the disk leaks
//	external-provisioner#1217  on    the finalizer is removed in the cache only: Terminating ([OldSidecar])
//	KEP-2644, step 9           off   pv-protection goes first, the plugin finds no volume: leak
//	KEP-2644, step 10          off   the plugin finds a deletionTimestamp: leak
//	KEP-2644, step 11          off   the sidecar finds a deletionTimestamp: leak
//
// Races and rows with the gate on:
//
//	the policy becomes Delete and the volume is deleted at once       leak
//	Bound, Delete, being deleted, without finalizer                   leak
//	in-tree, being deleted, without finalizer, then Delete            never Released
//	finalizer on an Available volume, then deleted                    Terminating
//	dynamic volume deleted before it was Bound                        Terminating, the claim Pending
//	Failed (Recycle), then Delete                                     never reclaimed
//	wrong phase Released                                              data of a live claim is deleted
//	Delete becomes Retain after a failed DeleteVolume, late watch     data is deleted
//	claim deleted while the watch of claims is late                   CreateVolume after DeleteVolume
//	the name of the volume is taken                                   the claim gets the other disk; leak
//	the removal of the finalizer is lost                              DeleteVolume again
//	two volumes of one disk                                           data of the other volume is deleted
//	rollback with a Released volume                                   leak
package upstream
