// Package journal reads and writes the journal of the provisioner
// (github.com/exeunt-io/exeunt/pkg/journal): the Leases that say which CreateVolume
// calls may have created a volume that no PersistentVolume records.
//
// One goroutine writes. What comes while a write is under way goes into the next one
// (group commit); a write that somebody waits for begins at once if none was made
// lately. Removals wait for company up to a second.
//
//	Start    reads all Leases, writes the own holder and term into each
//	Write    returns once the entry is durable; only then the driver may be called
//	Strike   removes an entry soon, RemoveNow before it returns
//	MoveToUnresolved moves an entry to the unresolved ones
//
// A Lease that another process has taken over ends the journal: [ErrLost].
package journal
