package controller

import "github.com/exeunt-io/exeunt/internal/enum"

// Deletion says how an object is being deleted.
type Deletion int

const (
	// NotDeleted: the object lives.
	NotDeleted Deletion = iota
	// InGrace: the deadline is ahead, that of the user or the default of the object.
	InGrace
	// Passed: the deadline has passed.
	Passed
	// Forced: nothing is to be waited for.
	Forced
	// Gone: the object does not exist.
	Gone
)

// String returns the name of the value.
func (d Deletion) String() string {
	return enum.Name(d, "NotDeleted", "InGrace", "Passed", "Forced", "Gone")
}

// Guest is what is known of the guest.
type Guest int

const (
	// NoRecord: the state directory has no record of a guest of the object. One may run that another state directory records.
	NoRecord Guest = iota
	// Off: it is proven that no guest runs.
	Off
	// Running: the guest runs.
	Running
	// Unknown: neither is proven.
	Unknown
)

// String returns the name of the value.
func (g Guest) String() string { return enum.Name(g, "NoRecord", "Off", "Running", "Unknown") }

// Request is what the guest was asked.
type Request int

const (
	// NotAsked: the guest was not asked to shut down.
	NotAsked Request = iota
	// AskedForOther: the guest was asked, and the deadline has moved since.
	AskedForOther
	// Asked: the guest was asked to shut down until the deadline.
	Asked
)

// String returns the name of the value.
func (r Request) String() string { return enum.Name(r, "NotAsked", "AskedForOther", "Asked") }

// State is what the controller knows of one object and its guest.
type State struct {
	Deletion Deletion
	// Finalizer: the object has the finalizer of the controller.
	Finalizer bool
	Guest     Guest
	Request   Request
	// Confirmed: the object was read from the API server just now.
	Confirmed bool
}
