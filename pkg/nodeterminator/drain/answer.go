package drain

import (
	"errors"
	"net/http"
	"regexp"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/internal/enum"
)

// maxPause bounds a pause: a proxy with a wrong number must not stop all evictions.
const maxPause = time.Minute

// unreachable is the pause after a request that reached no API server.
const unreachable = time.Second

// kind is what an answer says of a request.
type kind int

const (
	// accepted: the request was carried out.
	accepted kind = iota
	// blocked: a budget has no room.
	blocked
	// refused: anything else refuses this pod, or nothing answered in time.
	refused
	// unanswered: the API server is overloaded or away. It says nothing about the pod.
	unanswered
)

// String returns the name of the value.
func (k kind) String() string { return enum.Name(k, "accepted", "blocked", "refused", "unanswered") }

// result is an answer to an eviction or a deletion.
type result struct {
	kind kind
	// hint is after which time the API server wants to be asked again, 0 if it does not say.
	hint time.Duration
	// text is what refuses.
	text string
	// doubtful: the request may have been carried out. Of a server error that is not known.
	doubtful bool
}

// resultOf reads an answer. A 429 of a budget has a cause; one of an overloaded API server is no Status, which the
// client says by a cause of its own.
func resultOf(err error) result {
	if err == nil {
		return result{}
	}
	r := result{kind: refused, text: err.Error()}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		r.doubtful = true
		if !isUnanswered(err) {
			r.kind, r.hint = unanswered, unreachable
		}
		return r
	}
	if details := status.Status().Details; details != nil {
		r.hint = time.Duration(min(max(details.RetryAfterSeconds, 0), int32(maxPause/time.Second))) * time.Second
	}
	r.doubtful = status.Status().Code >= http.StatusInternalServerError
	switch {
	case status.Status().Code != http.StatusTooManyRequests:
	case apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause):
		r.kind = blocked
	case apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		r.kind, r.hint = unanswered, max(r.hint, unreachable)
	}
	return r
}

// namesBudget is how the API server names the budget that blocks.
var namesBudget = regexp.MustCompile(`The disruption budget (\S+) `)

// budgetIn returns the name of the budget that the answer names, for a caller that cannot list budgets.
func budgetIn(err error) string {
	cause, found := apierrors.StatusCause(err, policyv1.DisruptionBudgetCause)
	if !found {
		return ""
	}
	if match := namesBudget.FindStringSubmatch(cause.Message); match != nil {
		return match[1]
	}
	return ""
}
