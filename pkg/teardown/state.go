package teardown

import "github.com/exeunt-io/exeunt/internal/enum"

// Presence is whether Alive is there.
type Presence int

const (
	// Unread: it could not be read.
	Unread Presence = iota
	// Absent: the API server said that it is gone.
	Absent
	// Present: it was read.
	Present
)

// String returns the name of the value.
func (p Presence) String() string { return enum.Name(p, "Unread", "Absent", "Present") }

// Word is what the spec of Alive says of a person's permission.
type Word int

const (
	// NoWord: no confirm, no confirmedAt, or one more than five minutes in the future.
	NoWord Word = iota
	// OtherWord: confirm is the ID of another cluster.
	OtherWord
	// ExpiredWord: the deadline is over, confirmedAt + timeout.
	ExpiredWord
	// ValidWord: the permission holds.
	ValidWord
)

// String returns the name of the value.
func (w Word) String() string { return enum.Name(w, "NoWord", "OtherWord", "ExpiredWord", "ValidWord") }

// Readiness is whether the cluster can be torn down: rows 33, 65, 66, 69 and the rights.
type Readiness int

const (
	// Unchecked: not yet known.
	Unchecked Readiness = iota
	// Unready: something refuses, the condition Ready says what.
	Unready
	// Prepared: nothing refuses.
	Prepared
)

// String returns the name of the value.
func (r Readiness) String() string { return enum.Name(r, "Unchecked", "Unready", "Prepared") }

// Freeze is what keeps new disks and load balancers from being requested.
type Freeze int

const (
	// NoFreeze: the policy or its binding is missing.
	NoFreeze Freeze = iota
	// Written: policy and binding are there; no probe has shown yet that they are in force.
	Written
	// InForce: probes were denied in its name.
	InForce
)

// String returns the name of the value.
func (f Freeze) String() string { return enum.Name(f, "NoFreeze", "Written", "InForce") }

// Work is what is left to do.
type Work int

const (
	// Unlisted: a kind could not be read. What is not seen is not gone.
	Unlisted Work = iota
	// Ready: something can be deleted now.
	Ready
	// Awaited: something is left, and nothing can be deleted now.
	Awaited
	// Quiet: nothing is left. Calls in flight may still bring a volume.
	Quiet
	// Finished: all lists were read twice, a pause apart, and nothing was left.
	Finished
)

// String returns the name of the value.
func (w Work) String() string {
	return enum.Name(w, "Unlisted", "Ready", "Awaited", "Quiet", "Finished")
}

// State is what the decision about Alive rests on.
type State struct {
	// OtherCluster: the address of the API server leads to a cluster with another ID than at the start.
	OtherCluster bool
	// Alive is whether the object is there, the same as at the start by its UID.
	Alive Presence
	// Deleting: it has a deletionTimestamp.
	Deleting bool
	// Held: it has our finalizer.
	Held bool
	// Protected is spec.protected.
	Protected bool
	// Word is the person's permission.
	Word Word
	// Undefined: the CRD of Alive is being deleted. It is read before the start: its deletion deletes Alive, unasked.
	Undefined bool
	// Restored: it was started, and when we took over, the renewal of the Lease and the word were older than ten minutes.
	Restored bool
	// Readiness counts until the teardown is started, and again while no plan is saved.
	Readiness Readiness
	// Freeze is what keeps new disks away.
	Freeze Freeze
	// Planned: the plan of this Alive is saved, by its UID.
	Planned bool
	// Kept: each kept volume has the label and the policy Retain.
	Kept bool
	// Started: the condition Started is True.
	Started bool
	// Work is what is left.
	Work Work
	// Recorded: the record of this Alive, by its UID, says Complete.
	Recorded bool
	// Leading: we hold the Lease beyond the margin.
	Leading bool
	// Confirmed: kube-system and Alive were read live for this batch.
	Confirmed bool
}

// permitted reports whether a person's permission holds.
func (s State) permitted() bool { return !s.Protected && s.Word == ValidWord }
