// Package journal reads and writes the journal of the provisioner
// (github.com/exeunt-io/exeunt/pkg/journal): the Leases that say which CreateVolume
// calls may have created a volume that no PersistentVolume records.
//
// One goroutine writes. Changes during a write go into the next write (group commit). A
// write with a waiting caller begins at once unless there was one in the last interval;
// removals wait up to a second for other changes.
//
//	Start             reads all Leases, writes the own holder and term into each
//	Write             returns once the entry is durable; only then the driver may be called
//	Remove            removes an entry soon, RemoveNow before it returns
//	MoveToUnresolved  moves an entry to the unresolved ones
//
// A Lease that another process has taken over ends the journal: [ErrLost].
package journal
