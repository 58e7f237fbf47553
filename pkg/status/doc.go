// Package status answers "exeunt status": is the protection of KEP-2644 on? It counts the
// volumes that would leak if they were deleted before their claims, and finds the provisioner
// of each driver by its pods, else its Lease, else the volume that was created last.
//
//	volume.go        whether a volume is protected, and what a new pv-controller and provisioner do with it
//	loops.go         which loops write phases, by managedFields
//	work.go          whether a program runs the loops, and provisions for a driver
//	drivers.go       who provisions for a driver
//	leases.go        leader Leases and the journal
//	nodes.go         nodes of node-terminator
//	teardown.go      the teardown of the whole cluster
//	beforeswitch.go  what a switch to Exeunt deletes, and which rights are missing
//
// It writes nothing, lists each kind once in pages, and counts nothing as absent that was
// not seen.
package status
