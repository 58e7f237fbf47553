package deadline

import (
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxSeconds is the longest grace period, about 68 years. A longer one would overflow a [time.Duration] of a controller.
const MaxSeconds = math.MaxInt32

// Kind says how an object is being deleted.
type Kind int

const (
	// NotDeleted: the object has no deletion timestamp.
	NotDeleted Kind = iota
	// Unspecified: deleted without a grace period. The controller's own default counts.
	Unspecified
	// Graceful: deleted with a deadline, which may have passed.
	Graceful
	// Forced: deleted with the grace period 0. There is nothing to wait for.
	Forced
)

// String returns the name of the value.
func (k Kind) String() string {
	if k < NotDeleted || k > Forced {
		return "invalid"
	}
	return [...]string{"NotDeleted", "Unspecified", "Graceful", "Forced"}[k]
}

// Deletion is the deletion of one object, as its user asked for it.
type Deletion struct {
	kind      Kind
	requested time.Time
	end       time.Time // of Graceful
}

// Of reads the deletion of an object. The answer is the same at an API server with graceful deletion of custom
// resources, at one without, and after kubectl exeunt delete. Whatever the annotation holds, Of returns.
func Of(object metav1.Object) Deletion {
	timestamp := object.GetDeletionTimestamp()
	if timestamp == nil {
		return Deletion{}
	}
	if seconds := object.GetDeletionGracePeriodSeconds(); seconds != nil && *seconds > 0 {
		return graceful(timestamp.Add(-time.Duration(min(*seconds, MaxSeconds))*time.Second), timestamp.Time)
	}
	return Read(timestamp.Time, object.GetAnnotations()[Annotation])
}

// Read reads the deletion of an object whose deletionGracePeriodSeconds is 0, from its deletion timestamp and its
// annotation [Annotation].
func Read(timestamp time.Time, annotation string) Deletion {
	window, ok := Parse(annotation)
	switch {
	case !ok || !window.Binds(timestamp):
		return Deletion{kind: Unspecified, requested: timestamp}
	case window.Start.Equal(window.End):
		return Deletion{kind: Forced, requested: timestamp}
	}
	return graceful(timestamp, window.End)
}

func graceful(requested, end time.Time) Deletion {
	return Deletion{kind: Graceful, requested: requested, end: end}
}

// Kind says how the object is being deleted.
func (d Deletion) Kind() Kind { return d.kind }

// Forced reports whether the user asked to end now, and not to wait for anything.
func (d Deletion) Forced() bool { return d.kind == Forced }

// Requested returns when the deletion was requested, or the zero time.
func (d Deletion) Requested() time.Time { return d.requested }

// Deadline returns when the grace period ends: that of the user, else that of the controller, which begins at the
// request. An object that is not being deleted has none: the zero time, for which IsZero has to be asked.
func (d Deletion) Deadline(byDefault time.Duration) time.Time {
	switch d.kind {
	case Graceful:
		return d.end
	case Unspecified:
		return d.requested.Add(max(byDefault, 0))
	default: // the zero time, or that of a forced deletion
		return d.requested
	}
}

// Remaining returns the time from now to the deadline, 0 if the deadline has passed or the deletion is forced. An
// object that is not being deleted never ends: it has the longest duration left, whatever the default.
func (d Deletion) Remaining(now time.Time, byDefault time.Duration) time.Duration {
	switch d.kind {
	case NotDeleted:
		return math.MaxInt64
	case Forced:
		return 0 // whatever the clocks say
	default:
		return max(d.Deadline(byDefault).Sub(now), 0)
	}
}

// ForDependents returns the grace period in seconds with which a controller deletes its own objects: what remains, and
// 0 only if the deletion is forced. A remainder below a second is 1: 0 would force them. For an object that is not
// being deleted it is the default.
func (d Deletion) ForDependents(now time.Time, byDefault time.Duration) int64 {
	if d.Forced() {
		return 0
	}
	rest := byDefault
	if d.kind != NotDeleted {
		rest = d.Remaining(now, byDefault)
	}
	return min(max(int64(rest/time.Second), 1), MaxSeconds)
}
