package holder

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/families"
)

// FreshError is how long an event counts as an error reported now.
const FreshError = 10 * time.Minute

// failure is an error that a controller reports for an object now.
type failure struct {
	evidence blocker.Evidence
	since    time.Time
	// stale: nothing tells whether the error still holds.
	stale bool
}

// failure returns the error that one of the controllers reports for the object now, or nil,
// and whether the events of the object were seen.
func (f Finder) failure(ctx context.Context, object *unstructured.Unstructured, controllers []families.Controller,
	driver string) (*failure, bool) {
	events, seen := cluster.EventsOf(ctx, f.Reader, object.GetKind(), object)
	asked := deadline.Of(object).Requested()
	for _, controller := range controllers {
		if found := eventFailure(events, controller, driver, asked, f.Reader.Now()); found != nil {
			return found, seen
		}
		if found := conditionFailure(object, controller, asked, f.Reader.Now()); found != nil {
			return found, seen
		}
	}
	return nil, seen
}

// eventFailure returns the latest warning of the controller that is fresh and has no success
// after it, or nil. Events are sorted, oldest first.
func eventFailure(events []corev1.Event, controller families.Controller, driver string, asked, now time.Time) *failure {
	var latest *corev1.Event
	for i := range events {
		switch event := &events[i]; {
		case isFailure(event, controller, driver, asked):
			latest = event
		case latest != nil && isSuccess(event, latest, controller, driver):
			latest = nil
		}
	}
	if latest == nil || now.Sub(cluster.EventTime(*latest)) > FreshError {
		return nil
	}
	text := fmt.Sprintf("%s of %s, %s, last at %s: %s", latest.Reason, cluster.Component(latest),
		terminal.Times(latest.Count),
		blocker.Time(cluster.EventTime(*latest)), quoted(latest.Message))
	return &failure{evidence: blocker.Evidence{Source: blocker.FromEvent, Text: text}, since: firstTime(latest)}
}

// isFailure reports whether the event is a warning that the controller itself sent about its cleanup:
// by the reason; or, where the table has no reasons, any since the deletion was requested.
func isFailure(event *corev1.Event, controller families.Controller, driver string, asked time.Time) bool {
	if event.Type != corev1.EventTypeWarning {
		return false
	}
	if !controller.MaySend(cluster.Component(event), driver) {
		return false
	}
	if len(controller.ErrorReasons) > 0 {
		late := !cluster.EventTime(*event).Before(asked)
		return slices.Contains(controller.ErrorReasons, event.Reason) && (late || !isAboutCreation(event))
	}
	return len(controller.EventSources) > 0 && !cluster.EventTime(*event).Before(asked)
}

// isAboutCreation reports whether the warning is about making a load balancer: the service
// controller has one reason for that and for the deletion, SyncLoadBalancerFailed.
func isAboutCreation(event *corev1.Event) bool {
	return containsAny(event.Message, "failed to ensure load balancer", "failed to add load balancer cleanup finalizer")
}

// isSuccess reports whether the event says that the failed step went well later.
func isSuccess(event, failed *corev1.Event, controller families.Controller, driver string) bool {
	if !cluster.EventTime(*event).After(cluster.EventTime(*failed)) {
		return false
	}
	return slices.Contains(controller.SuccessReasons, event.Reason) &&
		controller.MaySend(cluster.Component(event), driver) ||
		event.Type == corev1.EventTypeNormal && cluster.Component(event) == cluster.Component(failed)
}

func firstTime(event *corev1.Event) time.Time {
	if !event.FirstTimestamp.IsZero() {
		return event.FirstTimestamp.Time
	}
	return event.CreationTimestamp.Time
}

// conditionFailure returns the condition of the object that says that its deletion fails,
// or nil. Conditions from before the deletion say nothing of it. A condition without a status, as of
// Argo CD, is not taken back once the error is gone: it counts for as long as an event does.
func conditionFailure(object *unstructured.Unstructured, controller families.Controller, asked,
	now time.Time) *failure {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, value := range conditions {
		fields, _ := value.(map[string]any)
		kind, status, reason := textField(fields, "type"), textField(fields, "status"), textField(fields, "reason")
		at, err := time.Parse(time.RFC3339, textField(fields, "lastTransitionTime"))
		_, hasStatus := fields["status"]
		fails := reportsDeletionError(kind, status, reason, controller) || !hasStatus && isDeletionError(kind)
		if asked.IsZero() || err != nil || at.Before(asked) || !fails {
			continue
		}
		text := fmt.Sprintf("condition %s is %s, %s,", kind, status, reason)
		if !hasStatus {
			text = "condition " + kind
		}
		text += fmt.Sprintf(" since %s: %s", blocker.Time(at), quoted(textField(fields, "message")))
		return &failure{blocker.Evidence{Source: blocker.FromCondition, Text: text}, at, !hasStatus &&
			now.Sub(at) > FreshError}
	}
	return nil
}

// reportsDeletionError reports whether a condition says that the deletion fails: its type
// does and it holds, or its reason does and it reports a trouble.
func reportsDeletionError(kind, status, reason string, controller families.Controller) bool {
	if isDeletionError(kind) {
		return status == "True"
	}
	if !isDeletionError(reason) && !slices.Contains(controller.ErrorReasons, reason) {
		return false
	}
	return status == "False" || status == "True" && isError(kind)
}

func isDeletionError(name string) bool {
	name = strings.ToLower(name)
	return isError(name) && containsAny(name, "delet", "clean", "finaliz", "terminat", "remov")
}

func isError(name string) bool {
	return containsAny(strings.ToLower(name), "fail", "error", "degraded", "stalled")
}

func containsAny(text string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}

func textField(fields map[string]any, name string) string {
	text, _ := fields[name].(string)
	return text
}
