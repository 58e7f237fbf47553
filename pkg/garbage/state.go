package garbage

// State is what is known of one object and of the owners that it refers to.
type State struct {
	// Missing: a list of the kind did not have the object, which proves nothing.
	Missing bool
	// Sent: this version of the object was deleted successfully; the watch is behind.
	Sent bool
	// Deleting: the object has a deletion timestamp.
	Deleting bool
	// Foreground and Orphan: the object has the finalizer foregroundDeletion or orphan.
	Foreground, Orphan bool
	// Live, Absent, Waiting, Orphaning, Unresolvable and Unverified: the object has a
	// reference with this verdict. Of an object that is being deleted, only references to
	// orphaning owners count.
	Live, Absent, Waiting, Orphaning, Unresolvable, Unverified bool
	// Dependents: the object has dependents.
	Dependents bool
	// Blocking: a dependent blocks the deletion of the object.
	Blocking bool
	// Seen: the graph has every kind as of a read that began after the deletion: of the
	// object, if it is being deleted, else of each owner that waits.
	Seen bool
}

// owned reports whether the object has owner references.
func (s State) owned() bool {
	return s.Live || s.Absent || s.Waiting || s.Orphaning || s.Unresolvable || s.Unverified
}
