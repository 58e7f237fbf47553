// Package disruption decides whether a node is deleted because its NodeClaim has drifted or expired. It reads no clock and
// no API object.
//
// "cause" is the condition Drifted, or an age past expireAfter. "room" is that fewer nodes are being terminated than
// may be at once. "T" is the terminationGracePeriod of the claim. "#" is the row of the design. The first case that
// fits counts.
//
//	#     cause   served   deleted   kept   room   T      pods      decision
//	      none    any      any       any    any    any    any       Wait, NoCause
//	07    any     no       any       any    any    any    any       Wait, NotServed
//	      any     yes      yes       any    any    any    any       Wait, Terminating
//	      any     yes      no        yes    any    any    any       Wait, DoNotDisrupt
//	62    any     yes      no        no     any    nil    blocked   Look, PodsBlock
//	62    any     yes      no        no     no     any    any       Wait, OthersTerminate
//	62    any     yes      no        no     yes    set    any       Delete
//	62    any     yes      no        no     yes    nil    unknown   Look
//	62    any     yes      no        no     yes    nil    free      Delete
//
// What holds in every state:
//
//   - Nothing is deleted without a cause, or while as many nodes are being terminated as may be at once.
//   - Without T, nothing is deleted while a pod of the node cannot be evicted, or while that is not known.
//   - Only a node that is served is deleted: its deletion is seen, and its pods are drained.
package disruption
