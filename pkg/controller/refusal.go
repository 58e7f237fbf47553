package controller

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

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
func CheckRefusal[T metav1.Object](ctx context.Context, refused error, what string, observed T,
	get func(context.Context, string, metav1.GetOptions) (T, error)) error {
	if !answer.NeedsRead(refused) { // also without an error
		return refused
	}
	live, exists, err := answer.Get(ctx, observed.GetName(), get)
	switch {
	case err != nil:
		return fmt.Errorf("read %s %s after its write was refused (%s): %w", what, observed.GetName(), refused.Error(), err)
	case !exists || live.GetUID() != observed.GetUID():
		return fmt.Errorf("%w: %s", ErrGone, refused.Error()) // not wrapped: callers do not match its status
	case patch.IsStale(refused) && live.GetResourceVersion() != observed.GetResourceVersion():
		return refused
	}
	return &answer.Refusal{Answer: refused}
}

// IsRefusal reports whether a write was refused or undone although the object is as it was observed, or because an
// admission webhook cannot be reached. Nothing but an event tells the object's user of that.
func IsRefusal(err error) bool {
	if patch.IsStale(err) || errors.Is(err, ErrStaleCache) || errors.Is(err, ErrGone) {
		return false
	}
	return answer.IsRefused(err) || isUnreachableWebhook(err) || errors.Is(err, ErrTooManySteps)
}

// isUnreachableWebhook reports whether the API server did not reach an admission webhook that must answer. An API server
// that ends cancels its own calls.
func isUnreachableWebhook(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInternalError(err) || !errors.As(err, &status) {
		return false
	}
	text := status.Status().Message
	return strings.HasPrefix(text, "Internal error occurred: failed calling webhook ") &&
		!strings.Contains(text, "context canceled")
}

// localPort is the part of an error of a connection that is another in each attempt.
var localPort = regexp.MustCompile(`\S+:\d+->`)

// RefusalText returns the text of the refusal in an event. It is the same as long as the cause is the same.
func RefusalText(err error) string {
	return localPort.ReplaceAllString(err.Error(), "")
}

// writeRefused is the reason of the event about a refused write; upstream has no such event.
const writeRefused = "WriteRefused"

// RefusalEvent returns the event about a write that was refused or undone. The write is a phrase such as "Adding the finalizer x".
func RefusalEvent(write string, err error) Event {
	return WarningEvent(writeRefused, fmt.Sprintf("%s failed, and is repeated with backoff: %s", write, RefusalText(err)))
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
