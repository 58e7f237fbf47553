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
// An API server that is away fails every read, which says nothing about kinds. So after each failure a kind
// that was read is read again: the check. The kind that failed is retried once the check has succeeded. After
// a failed check, the next one that succeeds begins the run anew: etcd may have been restored meanwhile.
// Without a successful one, of a kind that the API server of Kubernetes has itself, nothing is passed without.
//
// A Run sends no requests and has no clock: its owner carries out what [Run.Next] returns.
package barrier
