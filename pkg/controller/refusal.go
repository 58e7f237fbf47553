package controller

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/patch"
)

// ErrGone: a live read proved that the object to be written no longer exists.
var ErrGone = errors.New("the object no longer exists")

// CheckRefusal returns what the error of a write to the observed object proves. An admission webhook denies writes with
// codes of its choice, also with those of an object that is gone or has changed. CheckRefusal therefore reads the
// object, which what names in errors, and returns:
//
//	ErrGone                the object, or the object with this UID, does not exist
//	the error itself       the object has changed ([patch.IsStale]), or the code says nothing about the object
//	[answer.Refusal]   the object is as it was observed, or it lives in spite of a 404
func CheckRefusal[T metav1.Object](ctx context.Context, refused error, what string, observed T, get func(context.Context, string, metav1.GetOptions) (T, error)) error {
	stale := patch.IsStale(refused) // false without an error
	if !stale && !apierrors.IsNotFound(refused) && !apierrors.IsGone(refused) {
		return refused
	}
	live, exists, err := answer.Get(ctx, observed.GetName(), get)
	switch {
	case err != nil:
		return fmt.Errorf("read %s %s after its write was refused (%s): %w", what, observed.GetName(), refused.Error(), err)
	case !exists || live.GetUID() != observed.GetUID():
		return fmt.Errorf("%w: %s", ErrGone, refused.Error()) // not wrapped: callers do not match its status
	case stale && live.GetResourceVersion() != observed.GetResourceVersion():
		return refused
	}
	return &answer.Refusal{Answer: refused}
}

// IsRefusal reports whether a write was refused or undone although the object is as it was observed. Nothing but an event
// tells the object's user of that.
func IsRefusal(err error) bool {
	if patch.IsStale(err) || errors.Is(err, ErrStaleCache) || errors.Is(err, ErrGone) {
		return false
	}
	return answer.IsRefused(err) || errors.Is(err, ErrTooManySteps)
}

// writeRefused is the reason of the event about a refused write; upstream has no such event.
const writeRefused = "WriteRefused"

// RefusalEvent returns the event about a write that was refused or undone. The write is a phrase such as "Adding the finalizer x".
func RefusalEvent(write string, err error) Event {
	return WarningEvent(writeRefused, fmt.Sprintf("%s failed, and is repeated with backoff: %v", write, err))
}

// checkAnswer returns an error if the answer to a write of the object is about another object.
func checkAnswer(answer, written metav1.Object) error {
	if err := CheckName(answer, written.GetName()); err != nil {
		return err
	}
	if answer.GetUID() != written.GetUID() {
		return fmt.Errorf("the API server answers with the object of UID %q instead of %q", answer.GetUID(), written.GetUID())
	}
	return nil
}
