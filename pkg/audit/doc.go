// Package audit compares the volumes of a storage system with everything in one or more
// clusters that refers to volumes. It reads only: it deletes nothing, neither in the
// storage system nor in Kubernetes.
//
// One audit reads twice, in an order in which a volume cannot be created, recorded or
// handed over unseen:
//
//	1  all volumes of the storage system
//	2  journal entries, claims, VolumeAttachments, snapshot contents, group snapshot
//	   contents, pods, and last PersistentVolumes, of every cluster
//	3  if a volume is left that nothing refers to: wait, then 1 and 2 again
//	4  ValidateVolumeCapabilities for each PersistentVolume whose volume is not listed
//
// A journal entry is written before CreateVolume and removed after the PersistentVolume
// is created, so the journal is read after the volumes and before the PersistentVolumes.
//
// [verdict.Decide] decides about each volume, [verdict.DecideRecord] about each
// PersistentVolume. This package collects their inputs, in maps of hashes: two equal
// hashes can hide an orphan, but never make one.
package audit
