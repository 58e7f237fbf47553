// Package drain ends the pods of nodes that are being terminated. What happens to a pod is decided by package
// [github.com/exeunt-io/exeunt/pkg/termination/pod]; when a node is done, by the controller of nodes. It has one watch
// for each node, and polls nothing.
//
// Requests go in two lanes, which share no connection and no rate limit:
//
//   - Evictions, before L. At most one of each budget is in flight, over all nodes, the earliest L first. What the
//     watch of budgets shows is not asked for: a budget without room is tried when it gets room, and each 30 s.
//   - Forced requests: deletions from L, the second deletion of a Terminating pod, and removals after the proof. They
//     never wait for evictions, and an API server that asks for a pause pauses evictions only.
//
// How an answer to an eviction is read:
//
//	answer                                 meaning      tried again
//	success                                accepted     -
//	429, cause DisruptionBudget            blocked      when the budget gets room, and each 30 s; 5 s if it is unknown
//	429 without a Status, no connection    unanswered   all evictions after Retry-After, or 1 s
//	anything else, also no answer in 35 s  refused      that pod alone, when one of its budgets changes, and each 30 s
//
// A forced request that takes a second gives its place to the next one, and those that failed before have places of their
// own. Where an eviction at L or a condition was not answered in time, its namespace gets none for 30 s.
//
// At L a pod is evicted if its budgets have room. Else it gets the condition DisruptionTarget and is deleted. An eviction
// that is not answered within half a second then counts as refused.
//
// Each request has the UID of its pod as a precondition and an explicit grace period. Right before each deletion it is
// looked at again whether the pod still needs it. A removal is not sent if the process stopped to lead, if the Lease
// was renewed or the provider has another answer since the proof, or if the node was last reconciled 15 s ago.
//
// One mutex, that of [Drainer], guards everything: nodes, pods and the queue. It is held for no request.
//
// Counts have each pod once, by how it ended: what the API server accepted of us, else what the pod last showed. A pod
// whose end nobody saw is unknown.
package drain
