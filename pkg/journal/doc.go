// Package journal describes the write-ahead log of the provisioner: which
// CreateVolume calls may have created a volume that no PersistentVolume records.
// An entry is durable before the call and removed once the volume is recorded, or
// provably absent, so that no claim needs a finalizer (KEP-2644 leaves this open).
//
// Entries are annotations of numbered Leases in the provisioner's own namespace:
//
//	<driver>[-<node>-<hash>]-journal-<i>       entries of the leader, read when a process starts to lead
//	<driver>[-<node>-<hash>]-unresolved-<i>    entries that only an administrator can end
//
// Every Lease names its writer (holderIdentity) and the writer's term of the leader
// Lease ([Custody]). An entry that a process inherits is acted upon only if no other
// program was the leader in between.
//
// The package holds formats and decisions only; package
// pkg/provisioner/journalstore reads and writes the Leases.
package journal
