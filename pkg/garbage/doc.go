// Package garbage decides on the next step for one object of a garbage-collected cluster,
// from the verdicts on its owners and from its own finalizers. Package graph has the objects,
// package barrier finds out when the graph has seen all that was committed before a deletion.
//
// An owner reference has one verdict:
//
//	Live          the owner exists, and is not deleted in the foreground or orphaning
//	Absent        no object with the UID was at the coordinates of the reference, or seen there since
//	Waiting       read live within a second: the owner is deleted in the foreground
//	Orphaning     read live within a second: the owner is deleted, and its dependents stay
//	Unresolvable  the kind of the reference is not served, or cannot own the object
//	Unverified    any of these; a live read of the owner is needed
//
// What holds in every state:
//
//   - An object is deleted only if each of its references is absent or waits.
//   - A reference is removed only if it is absent or orphaning, or if it waits and another
//     owner keeps the object.
//   - An owner loses foregroundDeletion or orphan only after a barrier, and without dependents
//     that block it.
//
// Owners that wait for each other are released together: [DecideComponent].
package garbage
