package alive

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// DefaultTimeout is the timeout of an Alive that names none.
	DefaultTimeout = time.Hour
	// MinTimeout is the least spec.timeout.
	MinTimeout = time.Minute
	// MaxTimeout is the greatest spec.timeout.
	MaxTimeout = 24 * time.Hour
	// MaxAhead is how far in the future spec.confirmedAt may be: the clock of the machine that wrote it may be wrong. A
	// time further ahead would make a permission that lasts for longer than a day.
	MaxAhead = 5 * time.Minute
)

// CleanUp reports whether a participant may delete its external resources now. Each condition stands alone: without
// any of them nothing is deleted.
func CleanUp(object *Alive, now time.Time) bool {
	return object.IsDeleted() && !object.IsProtected() && object.IsStarted() && object.TimeLeft(now) > 0
}

// IsDeleted reports whether the deletion was requested.
func (a *Alive) IsDeleted() bool { return a != nil && a.DeletionTimestamp != nil }

// IsProtected reports whether the teardown is not permitted. An object without the field is protected.
func (a *Alive) IsProtected() bool { return a == nil || a.Spec.Protected == nil || *a.Spec.Protected }

// IsStarted reports whether the runner has written condition Started.
func (a *Alive) IsStarted() bool {
	return a != nil && meta.IsStatusConditionTrue(a.Status.Conditions, ConditionStarted)
}

// Deadline returns the end of the permission, the zero time if there is none.
func (a *Alive) Deadline() time.Time {
	if a == nil || a.Spec.ConfirmedAt.IsZero() {
		return time.Time{}
	}
	timeout := DefaultTimeout
	if a.Spec.Timeout != nil {
		timeout = min(a.Spec.Timeout.Duration, MaxTimeout)
	}
	return a.Spec.ConfirmedAt.Add(timeout)
}

// TimeLeft returns how long the permission lasts from now on, 0 if it has ended or counts for nothing.
func (a *Alive) TimeLeft(now time.Time) time.Duration {
	deadline := a.Deadline()
	if deadline.IsZero() || a.Spec.ConfirmedAt.After(now.Add(MaxAhead)) {
		return 0
	}
	return max(deadline.Sub(now), 0)
}

// FromUnstructured converts what the dynamic client has read. An object of another version, or without spec.protected,
// is an error: what it permits is unknown.
func FromUnstructured(object *unstructured.Unstructured) (*Alive, error) {
	if got, want := object.GroupVersionKind(), GroupVersion.WithKind(Kind); got != want {
		return nil, fmt.Errorf("read Alive: the object is of %s, and not of %s", got, want)
	}
	out := new(Alive)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, out); err != nil {
		return nil, fmt.Errorf("read Alive: %w", err)
	}
	if out.Spec.Protected == nil {
		return nil, fmt.Errorf("read Alive: %q has no spec.protected", out.Name)
	}
	return out, nil
}

// ToUnstructured converts the object for the dynamic client.
func ToUnstructured(object *Alive) (*unstructured.Unstructured, error) {
	object = object.DeepCopy()
	object.TypeMeta = metav1.TypeMeta{APIVersion: GroupVersion.String(), Kind: Kind}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("write Alive: %w", err)
	}
	return &unstructured.Unstructured{Object: content}, nil
}

// New returns the Alive that the runner creates: protected, with the runner's finalizer.
func New() *Alive {
	return &Alive{
		TypeMeta:   metav1.TypeMeta{APIVersion: GroupVersion.String(), Kind: Kind},
		ObjectMeta: metav1.ObjectMeta{Name: Name, Finalizers: []string{Finalizer}},
		Spec:       Spec{Protected: new(true)},
	}
}
