// Package rollback decides what "exeunt rollback" removes when an administrator returns to
// upstream's programs, and what it leaves alone.
//
//	object                                   removed when
//	annotations exeunt.io/*                  no program of Exeunt serves the object
//	annotation exeunt.io/reclaim: pending    as above; if its removal leaks the disk, the
//	                                         administrator has named the volume as well
//	Leases of the journal                    as above, no pod of the provisioner stands by, and
//	                                         their open entries are in a file
//	finalizer of node-terminator             the node is not being deleted; "exeunt rollback nodes"
//	deletion windows                         never: rewritten once the API server is upstream's
//	finalizers that upstream removes, too    the administrator says that nobody serves them,
//	                                         and nobody was seen
//
// Whether a program serves has four values ([Server]). What was not seen is never taken for
// absent. The package does no I/O and knows no clock; package runner observes and executes.
package rollback
