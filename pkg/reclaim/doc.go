// Package reclaim holds what the two programs that reclaim PersistentVolumes share
// (KEP-2644, "Honor Persistent Volume Reclaim Policy"): the annotation exeunt.io/reclaim,
// and when a claim allows that its volume is reclaimed.
//
// Each program decides in a package of its own:
//
//	package           program        volumes                                finalizer
//	reclaim/external  provisioner    CSI volumes, also migrated ones        External
//	reclaim/plugin    pv-controller  volumes of in-tree plugins, recycling  InTree
//
// Invariants of both, tested over every state:
//
//   - Data is deleted in one case only, never by default.
//   - Data is deleted only after live reads of the volume and its claim.
//   - A volume that is being deleted never keeps a finalizer that nobody removes.
//
// The annotation is for a bound volume that was deleted before its finalizer was added,
// which the API server no longer allows then:
//
//	value    written by                                   pv-controller
//	pending  provisioner, when it first sees the volume   keeps pv-protection on the released volume
//	done     provisioner, after DeleteVolume              removes pv-protection
//
// With the gate HonorPVReclaimPolicy off, both packages behave as Kubernetes did before
// the KEP: a volume that is deleted before its claim is not reclaimed.
//
// The packages do no I/O and know no clock.
package reclaim
