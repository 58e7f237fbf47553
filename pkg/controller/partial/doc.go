// Package partial decodes parts of the objects that informers list and watch.
//
// Every provisioner is sent all volumes and claims of the cluster, and pv-controller all
// pods. Decoding takes most of the time, for fields that a transform or a filter removes
// afterwards. This package cuts these fields out of the protobuf encoding before
// client-go decodes the rest:
//
//	object                                      decoded
//	of a kind without a rule                    everything
//	encoded as JSON, or not understood          everything
//	with the annotation of the initial events   everything
//	with one of the texts of [Rule.Whole]       the fields of Rule.Fields
//	without [Rule.Has]                          the fields of Rule.Fields
//	any other                                   the fields of Rule.Foreign
//
// A rule changes no result: transforms and filters must return the same for the partial
// object as for the whole one. The client is for informers and for lists of other programs'
// objects; an object that is read before a write is decoded completely.
package partial
