package cluster

import "github.com/exeunt-io/exeunt/internal/enum"

// Presence says whether an object exists.
type Presence int

const (
	// Unseen: the object could not be read.
	Unseen Presence = iota
	// Absent: the API server says that the object does not exist.
	Absent
	// Present: the object was read.
	Present
)

// String returns the name of the value.
func (p Presence) String() string { return enum.Name(p, "unseen", "absent", "present") }
