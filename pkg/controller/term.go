package controller

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// ShutdownGracePeriod is the time that a worker has to finish its object after its context
// has ended. It is shorter than the rest of a lease that could not be renewed.
const ShutdownGracePeriod = 3 * time.Second

// Term is the time during which this process leads, from acquiring its lease.
type Term interface {
	// Leading reports whether this process leads for longer than it takes to stop, and its
	// lease was found unchanged since the connection to the API server was last interrupted:
	// etcd was not restored from a backup. It may wait for a read of the lease.
	Leading() bool
	// ID identifies the lease as it was when this process acquired it.
	ID() TermID
}

// TermID identifies one term of one lease. A term of another process in between increases
// the number of transitions, and a lease that is created again has a new UID.
type TermID struct {
	LeaseUID    types.UID
	Transitions int32
}

// ErrLeaseEnding: what this process read while it led may have changed since.
var ErrLeaseEnding = errors.New("the leader lease is about to end, or was not found unchanged yet since the API server was away")

// CheckLeading returns [ErrLeaseEnding] if leading, nil for always, says that another process may lead soon, or that etcd
// may have been restored. It is called right before data is removed: a process that was frozen wakes up anywhere.
func CheckLeading(leading func() bool) error {
	if leading != nil && !leading() {
		return ErrLeaseEnding
	}
	return nil
}

// UnlimitedTerm returns the term of a process without leader election: it never ends, and
// its ID is zero. Such a process does not notice that etcd was restored.
func UnlimitedTerm() Term { return unlimited{} }

type unlimited struct{}

func (unlimited) Leading() bool { return true }
func (unlimited) ID() TermID    { return TermID{} }
