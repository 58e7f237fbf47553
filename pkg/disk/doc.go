// Package disk tells which disk a PersistentVolume stands for, and whether two
// PersistentVolumes stand for one disk. Deleting or recycling one of two such volumes
// would destroy the data of the other, so both programs ask this package first.
//
//	volumes                                 one disk if
//	two CSI sources                         driver and volume handle are equal
//	CSI source and in-tree source           translated handles, or plugin names, are equal
//	two in-tree sources, migrated plugin    translated handles, or plugin names, are equal
//	host path, local, NFS                   the directories are equal or nested, and one
//	                                        node may reach both
//
// Where the volumes do not tell for certain, the answer is "one disk": a volume that is
// kept by mistake loses no data.
//
// The package looks at the volumes alone; the caller searches its cache for candidates.
package disk
