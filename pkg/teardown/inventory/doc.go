// Package inventory holds what a teardown knows of the objects of a cluster, trimmed to what decisions need, and says
// what each of them waits for. It does no I/O and reads no clock. An Inventory is not safe for concurrent use.
//
//	inventory.go  the objects: Set, Remove
//	facts.go      what is kept of volumes, claims and pods
//	outside.go    what is kept of Services, Ingresses, Gateways and snapshots
//	driver.go     in which namespaces CSI drivers run; infrastructure namespaces
//	served.go     which Services are the servers of volumes, where Ceph clusters are
//	view.go       indexes and decisions over all objects at one time
//	wave.go       the order of claims
//	step.go       what may be done now, and what is left
//	item.go       the external resources, for plan and report
//
// The plan fills it from paged lists, the runner from informers. What is not set is absent: the caller knows which lists
// it has read.
package inventory
