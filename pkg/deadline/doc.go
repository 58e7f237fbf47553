// Package deadline computes when the termination of a node ends: from the time of the request, the period that the
// node names, and an annotation that can only move the end earlier. It reads no clock and no API object.
//
//	R  the request: when the Node or its claim was deleted, whichever was first
//	T  the period: label exeunt.io/termination-grace-period of the Node, or spec.terminationGracePeriod of the claim
//	D  the deadline: R + T, or an earlier annotation. It never moves later
//	A  the time to unmount: 5 s, while a volume is attached 30 s, at most T/4
//	P  D - A: the grace period of each pod ends here at the latest
//	E  the machine is stopped here: D, or 10 s after a first action that came in the last 5 s before D, or later
//	L  P - g: from here on a pod with the grace period g is deleted, whatever refuses its eviction
//
// The periods are those of Karpenter's NodeClaim termination grace period design, which calls D "node timeout" and
// deletes a pod at D - g. That leaves no time to unmount: here the grace period ends at P.
package deadline
