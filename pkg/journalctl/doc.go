// Package journalctl lists the provisioning journals of a cluster, and finishes or drops
// unresolved entries. The command "exeunt journal" calls it.
//
//	List    reads the journal Leases of all provisioners
//	Finish  requests in the Lease that the provisioner repeats the request and records the volume
//	Drop    removes an entry; afterwards no program knows a volume that the request created
//
// Finish and Drop accept only unresolved entries, named by claim UID, and read the claim and
// the PersistentVolume live first (decide.go). Drop also accepts entries of the journal of a node
// that does not exist (node.go).
package journalctl
