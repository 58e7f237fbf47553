package operator

// State is what is known of a Bucket.
type State struct {
	// Deleted: it has a deletionTimestamp.
	Deleted bool
	// Finalizer: it has our finalizer.
	Finalizer bool
	// Made: its directory was made.
	Made bool
	// MayMake: a directory that is made now is removed when the cluster goes away.
	MayMake bool
}

// Action is the next step for a Bucket.
type Action string

// The actions.
const (
	Wait         Action = "Wait"
	AddFinalizer Action = "AddFinalizer"
	Make         Action = "Make"
	Remove       Action = "Remove" // the directory, then the finalizer
)

// Decide returns the next step. It is total and pure.
func Decide(s State) Action {
	switch {
	case s.Deleted && s.Finalizer:
		return Remove
	case s.Deleted, s.Made, !s.MayMake:
		return Wait
	case !s.Finalizer: // before the directory, or a deletion in between would leave it behind
		return AddFinalizer
	}
	return Make
}
