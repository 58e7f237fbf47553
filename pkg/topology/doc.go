// Package topology decides where a new volume shall be reachable from: it makes
// the accessibility requirements of a CreateVolumeRequest from the nodes, their
// topology keys, the storage class and the node that the scheduler chose. It
// reads nothing by itself.
//
//	binding               class allows    requisite                     preferred
//	Immediate             nothing         every registered topology     from the claim's name on
//	Immediate             some places     those places                  from the claim's name on
//	WaitForFirstConsumer  nothing         those with the node's keys    from the node's place on
//	WaitForFirstConsumer  some places     those places                  from the node's place on
//	the same, strict      both            the node's place              the node's place
//
// Immediate without --immediate-topology and without allowed places asks for
// nothing.
//
// Invariants:
//
//   - preferred is a permutation of requisite, and nothing occurs twice;
//   - with a chosen node, the first preferred place contains that node;
//   - the same nodes, class and claim give the same requirement, in whatever
//     order they are listed: a request that is repeated is the same request;
//   - claims of one StatefulSet go round the places in the order of their
//     ordinals, and those of one replica meet in one place.
//
// A registered topology has the values that a node's labels give one set of keys
// that the driver has registered there. Nodes may differ in their sets: Immediate
// binding takes every set that occurs, and with each set the nodes whose own set
// includes it. Labels without the driver's registration do not count.
//
// A place is a set of segments, one value for each topology key; a
// node lies in a place if its labels say so for every key. See the CSI
// specification, "TopologyRequirement".
package topology
