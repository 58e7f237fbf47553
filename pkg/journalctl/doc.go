// Package journalctl shows the provisioning journal of a cluster and ends unresolved
// entries: the logic of "exeunt journal".
//
//	List    reads all journal Leases, of every provisioner of the cluster
//	Finish  marks an entry; its provisioner repeats the request and records the volume
//	Drop    removes an entry; its volume, if there is one, is no longer known to any program
//
// Only unresolved entries can be ended, only by claim UID, and only after a live look
// at the claim and the PersistentVolume ([Decide]).
package journalctl
