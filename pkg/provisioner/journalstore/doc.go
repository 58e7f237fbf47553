// Package journalstore reads and writes the journal of the provisioner
// (github.com/exeunt-io/exeunt/pkg/journal): Leases with an entry for each CreateVolume
// call that may have created a volume without a PersistentVolume.
//
// One goroutine writes. The next write has all changes that came during a write (group
// commit). A write with a waiting caller begins at once, or at the end of the interval since
// the last write. Removals wait up to a second for other changes.
//
//	Start             reads all Leases and writes this process's holder and term into each
//	Write             returns after the entry is durable; the caller then calls the driver
//	Remove            removes an entry with the next write
//	RemoveNow         removes an entry before it returns
//	MoveToUnresolved  moves an entry into a Lease for unresolved entries
//
// After a definite refusal, such as Forbidden, new entries are given up and removals are retried.
// After an answer that proves nothing, such as a timeout, entries count as stored until a
// write succeeds, or the Lease is read after no earlier write can be executed any more.
//
// After another process has taken over a Lease, all calls return [ErrLost].
package journalstore
