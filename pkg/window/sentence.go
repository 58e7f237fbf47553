package window

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/graceful"
	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// Result is what became of an object.
type Result struct {
	Ref cluster.Ref
	UID types.UID
	// Reason is that of the decision.
	Reason graceful.Reason
	// Sent: a DELETE was sent.
	Sent bool
	// Gone: the object is gone.
	Gone bool
	// Deletion is that of an object that is not gone.
	Deletion deadline.Deletion
}

// Name returns the name of an object as kubectl prints it.
func Name(ref cluster.Ref) string {
	kind := strings.ToLower(ref.Kind)
	if ref.Resource.Group != "" {
		kind += "." + ref.Resource.Group
	}
	return fmt.Sprintf("%s %q", kind, ref.Name)
}

// String returns the result as a sentence.
func (r Result) String() string {
	name := Name(r.Ref)
	deleted := name + " deleted"
	if !r.Sent && !r.Gone {
		deleted = name + " is already being deleted"
	}
	switch {
	case r.Gone && r.Reason == graceful.NeedsFinalizer:
		return deleted + " at once: it had no finalizer, so no controller waits for a deadline"
	case r.Gone:
		return deleted
	}
	return deleted + outcome(r.Deletion)
}

// outcome is the end of a sentence about a deletion.
func outcome(found deadline.Deletion) string {
	switch found.Kind() {
	case deadline.Forced:
		return ", by force"
	case deadline.Graceful:
		return ", its deadline is " + format(found.Deadline(0))
	default:
		return ", without a grace period"
	}
}

func format(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// refusal is the error of a request that cannot be met.
func refusal(ref cluster.Ref, reason graceful.Reason, found deadline.Deletion) error {
	name := Name(ref)
	switch reason {
	case graceful.OnlyForceShortens:
		return fmt.Errorf("%s is already being deleted without a grace period, which only --force changes", name)
	case graceful.AlreadyForced:
		return fmt.Errorf("%s is already being deleted by force, which no grace period changes", name)
	case graceful.NotDeleted:
		return fmt.Errorf("%s is not being deleted, although the API server accepted the request", name)
	case EndsAtStock:
		return fmt.Errorf("the deadline of %s stays %s: no annotation %s holds it for an API server of upstream, where a "+
			"DELETE would end the grace period at once", name, format(found.Deadline(0)), deadline.Annotation)
	case NotInForce:
		return fmt.Errorf("%s was deleted, but its grace period is not in force: the API server accepted the annotation %s "+
			"and did not store it", name, deadline.Annotation)
	default:
		return fmt.Errorf("the deadline of %s stays %s: a deadline can only move earlier", name, format(found.Deadline(0)))
	}
}
