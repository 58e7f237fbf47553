// Package nodeterminator terminates nodes: it drains a Node with the label exeunt.io/termination-grace-period that is
// deleted, and ends it at its deadline. Package [github.com/exeunt-io/exeunt/pkg/termination/node] decides.
//
//	observe                                            from
//	Owner, Deleting, Protected, Begun                  the Node, its NodeClaim
//	deadline, Ended                                    the Node, the clock of the API server (package servertime)
//	Silent                                             a watch of the Lease (package lease), the condition Ready
//	Instance, Proof                                    the provider (package machine), Lease, taint out-of-service
//	Volumes                                            VolumeAttachments, and the pods that use them
//	Pods, Settled                                      package drain
//
// One worker at a time reconciles a node. Before each step that cannot be taken back the Node is read live, by its
// UID; after the proof the Lease, too, and before Delete all VolumeAttachments. Nothing that may wait for a
// webhook or a provider delays Stop: calls of the provider, writes of claims, the restoration of the deadline, and the
// report run in the background, and another write of the worker ends at E.
//
// Whether the kubelet was silent before the node was deleted, which row 55 needs at once, the condition Ready says: it
// is Unknown once the node lifecycle controller has seen no renewal for its monitor grace period. A watch of our own
// on each Lease would cost a request of each kubelet each 10 s. A renewal that we see counts for more than the
// condition.
package nodeterminator
