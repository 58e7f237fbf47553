// Package barrier finds out when a graph of objects has seen, of every kind, all that was
// committed before a moment. A [Run] serves all owners whose deletion was observed before it
// began. For each kind:
//
//	Probe    a consistent read of the kind's present version, begun within the run
//	Follow   the watch brings the graph to this version, by an event or a bookmark
//	List     after [FollowTime] without it: a consistent list into the graph
//
// Versions are compared within one kind only; a kind whose versions are no integers is listed
// at once. A kind that cannot be read is retried, and does not delay the others. After
// the limit of the run its result is [PassedWithout] these kinds.
//
// A Run sends no requests and has no clock: its owner carries out what [Run.Next] returns.
package barrier
