// Package nodes provides the Node and CSINode objects that the provisioner works with.
//
// Source of the node that the scheduler selected for a claim:
//
//	driver has topology  node                 source
//	no                   any                  the name alone, no request
//	yes                  the served node      the topology of the driver, no request
//	yes                  any other            a live read; the cache if reading is forbidden
//
// With --node-deployment the caches of Nodes and CSINodes hold the served node only, as
// its driver describes it, and no watch is open.
package nodes
