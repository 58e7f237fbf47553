// Package topology computes the accessibility requirements of a CreateVolumeRequest from
// the nodes, their registered topology keys, the storage class and the selected node, and
// translates between CSI topologies and node affinities. It does no I/O.
//
//	binding               allowed topologies  requisite                     preferred starts at
//	Immediate             none                all registered segments       an offset by claim name
//	Immediate             some                the allowed segments          an offset by claim name
//	WaitForFirstConsumer  none                segments of the node's keys   the node's segment
//	WaitForFirstConsumer  some                the allowed segments          the node's segment
//	the same, strict      any                 the node's segment            the node's segment
//
// Immediate without --immediate-topology and without allowed topologies has no
// requirement.
//
// Invariants:
//
//   - preferred is a permutation of requisite, and both have no duplicates;
//   - the first preferred segment contains the selected node;
//   - the same nodes, class and claim give the same requirement in any order of listing,
//     so that a repeated request is the same request;
//   - claims of a StatefulSet rotate through the segments by ordinal, and all claims of
//     one replica prefer one segment.
//
// A registered segment has the values of a node's labels for one set of topology keys that
// the driver registered on the node (CSINode). Sets may differ between nodes: Immediate
// binding uses every set, and for each set the nodes with all of its keys.
package topology
