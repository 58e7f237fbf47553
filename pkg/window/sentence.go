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
	case r.Deletion.Forced():
		return deleted + ", by force"
	case r.Deletion.Kind() == deadline.Graceful:
		return deleted + ", its deadline is " + format(r.Deletion.Deadline(0))
	}
	return deleted + ", without a grace period"
}

func format(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// refusal is the error of a request that cannot be met.
func refusal(ref cluster.Ref, reason graceful.Reason, before deadline.Deletion) error {
	name := Name(ref)
	if reason == graceful.OnlyForceShortens {
		return fmt.Errorf("%s is already being deleted without a grace period, which only --force changes", name)
	}
	if reason == graceful.AlreadyForced {
		return fmt.Errorf("%s is already being deleted by force, which no grace period changes", name)
	}
	if reason == FieldStays {
		return fmt.Errorf("the deadline of %s stays %s: it is in the field deletionGracePeriodSeconds, which this API "+
			"server does not change", name, format(before.Deadline(0)))
	}
	return fmt.Errorf("the deadline of %s stays %s: a deadline can only move earlier", name, format(before.Deadline(0)))
}

// notInForce is the error of an object that was deleted without the grace period that was asked for.
func notInForce(ref cluster.Ref) error {
	return fmt.Errorf("%s was deleted, but its grace period is not in force: the gate CustomResourceGracefulDeletion of "+
		"the API server is off, another client removed the annotation %s, or the annotations have no room for it",
		Name(ref), deadline.Annotation)
}
