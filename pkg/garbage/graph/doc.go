// Package graph holds the objects of a cluster and their owner references, in little memory:
// 1,000,000 nodes must fit into a process. It is fed by lists, watches and live reads, judges
// owner references by their own coordinates and UID, and finds owners that wait for each other.
//
// What is known about an owner comes from three sources:
//
//	source       proves                                           until
//	graph        the owner lives, if it is not deleted in the     its next event
//	             foreground or orphaning
//	watch event  DELETED: absent at these coordinates             the object is seen there again
//	live read    absent at these coordinates                      the object is seen there again
//	             deleted in the foreground, orphaning, or live    [ReadLifetime], or its next event
//
// A write rests on a live read of each absent owner within [ReadLifetime]: [Judgement.Unproven].
//
// An object that a list lacks is not absent: it is read live if anything depends on it.
//
// A Graph has no lock and no clock. Every change adds the objects to be judged anew to the
// list that [Graph.TakeChanged] returns.
package graph
