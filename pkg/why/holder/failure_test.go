package holder

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/pkg/why/families"
)

func newEvent(eventType, reason, component string, ago time.Duration) corev1.Event {
	return corev1.Event{
		Type: eventType, Reason: reason, Message: "it\x1b[31m broke", Source: corev1.EventSource{Component: component},
		FirstTimestamp: at(time.Hour), LastTimestamp: at(ago), Count: 3,
	}
}

// syncFailed is the event of a load balancer that could not be made or deleted.
func syncFailed(step string, ago time.Duration) []corev1.Event {
	event := newEvent("Warning", "CleanupFailed", "painter", ago)
	event.Message = "it\x1b[31m broke: failed to " + step + " load balancer: quota"
	return []corev1.Event{event}
}

func TestEventsOfAnotherProgramTellNothing(t *testing.T) {
	withReasons := families.Controller{EventSources: []string{"painter"}, ErrorReasons: []string{"CleanupFailed"},
		SuccessReasons: []string{"Cleaned"}}
	for name, tc := range map[string]struct {
		controller families.Controller
		events     []corev1.Event // oldest first
		want       bool
	}{
		"success of another program": {withReasons,
			[]corev1.Event{newEvent("Warning", "CleanupFailed", "painter", 2*time.Minute),
				newEvent("Normal", "Cleaned", "other", time.Minute)}, true},
		"failure of another program": {withReasons, []corev1.Event{newEvent("Warning", "CleanupFailed", "other", time.Minute)}, false},
		"failure of an unknown program": {families.Controller{ErrorReasons: []string{"CleanupFailed"}},
			[]corev1.Event{newEvent("Warning", "CleanupFailed", "other", time.Minute)}, true},
	} {
		if got := eventFailure(tc.events, tc.controller, "a.example", now.Add(-5*time.Minute), now); (got != nil) != tc.want {
			t.Errorf("%s: the failure is %+v, want one: %v", name, got, tc.want)
		}
	}
}

func TestEventFailure(t *testing.T) {
	withReasons := families.Controller{EventSources: []string{"painter"}, ErrorReasons: []string{"CleanupFailed"},
		SuccessReasons: []string{"Cleaned"}}
	anyWarning := families.Controller{EventSources: []string{"painter-{driver}"}}
	asked := now.Add(-5 * time.Minute)
	for name, tc := range map[string]struct {
		controller families.Controller
		events     []corev1.Event // oldest first
		want       bool
	}{
		"none":                      {withReasons, nil, false},
		"failed cleanup":            {withReasons, []corev1.Event{newEvent("Warning", "CleanupFailed", "painter", time.Minute)}, true},
		"failed cleanup 11 min ago": {withReasons, []corev1.Event{newEvent("Warning", "CleanupFailed", "painter", 11*time.Minute)}, false},
		"failed cleanup of two hours ago": {withReasons,
			[]corev1.Event{newEvent("Warning", "CleanupFailed", "painter", 2*time.Hour), newEvent("Normal", "Cleaned", "painter", time.Hour)}, false},
		"success since": {withReasons,
			[]corev1.Event{newEvent("Warning", "CleanupFailed", "painter", 2*time.Minute), newEvent("Normal", "Cleaned", "painter", time.Minute)}, false},
		"normal event since": {withReasons,
			[]corev1.Event{newEvent("Warning", "CleanupFailed", "painter", 2*time.Minute), newEvent("Normal", "Painted", "painter", time.Minute)}, false},
		"normal event of another program": {withReasons,
			[]corev1.Event{newEvent("Warning", "CleanupFailed", "painter", 2*time.Minute), newEvent("Normal", "Painted", "other", time.Minute)}, true},
		"normal event of the same second": {withReasons, []corev1.Event{newEvent("Warning", "CleanupFailed", "painter", time.Minute), newEvent("Normal", "Painting", "painter", time.Minute)}, true},
		"failed again after a success":    {withReasons, []corev1.Event{newEvent("Normal", "Cleaned", "painter", 2*time.Minute), newEvent("Warning", "CleanupFailed", "painter", time.Minute)}, true},
		"creation before the deletion":    {withReasons, syncFailed("ensure", 6*time.Minute), false},
		"cleanup before the deletion":     {withReasons, syncFailed("delete", 6*time.Minute), true},
		"other warning":                   {withReasons, []corev1.Event{newEvent("Warning", "Unhealthy", "painter", time.Minute)}, false},
		"reason of a normal event":        {withReasons, []corev1.Event{newEvent("Normal", "CleanupFailed", "painter", time.Minute)}, false},
		"warning since the deletion":      {anyWarning, []corev1.Event{newEvent("Warning", "Broken", "painter-a.example", time.Minute)}, true},
		"warning before the deletion":     {anyWarning, []corev1.Event{newEvent("Warning", "Broken", "painter-a.example", 6*time.Minute)}, false},
		"warning of another driver":       {anyWarning, []corev1.Event{newEvent("Warning", "Broken", "painter-b.example", time.Minute)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := eventFailure(tc.events, tc.controller, "a.example", asked, now)
			if (got != nil) != tc.want {
				t.Fatalf("the failure is %+v, want one: %v", got, tc.want)
			}
			if got != nil && !strings.Contains(got.evidence.Text, `3 times, last at 2026-03-01T11:5`) {
				t.Errorf("the text is %q", got.evidence.Text)
			}
			if got != nil && !strings.Contains(got.evidence.Text, `"it\x1b[31m broke`) {
				t.Errorf("the message is not escaped in %q", got.evidence.Text)
			}
		})
	}
}

func TestConditionFailure(t *testing.T) {
	asked := now.Add(-5 * time.Minute)
	controller := families.Controller{ErrorReasons: []string{"BucketNotEmpty"}}
	for name, tc := range map[string]struct {
		kind, status, reason string
		ago                  time.Duration
		want                 bool
	}{
		"deletion failed by its type":          {"DeletionFailed", "True", "X", time.Minute, true},
		"no failed deletion":                   {"DeletionFailed", "False", "X", time.Minute, false},
		"deletion failed by its reason":        {"Ready", "False", "DeleteError", time.Minute, true},
		"deletion failed before the deletion":  {"Ready", "False", "DeleteError", time.Hour, false},
		"reason of the table":                  {"Synced", "False", "BucketNotEmpty", time.Minute, true},
		"degraded by a failed cleanup":         {"Degraded", "True", "CleanupFailed", time.Minute, true},
		"not ready while deleting":             {"Ready", "False", "Deleting", time.Minute, false},
		"other error":                          {"Ready", "False", "ReconcileError", time.Minute, false},
		"ready again":                          {"Ready", "True", "DeleteError", time.Minute, false},
		"unknown":                              {"Ready", "Unknown", "DeleteError", time.Minute, false},
		"terminated, which is not an error":    {"Terminated", "True", "Terminated", time.Minute, false},
		"finalizer error, by its capital type": {"FinalizerError", "True", "", time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{map[string]any{
				"type": tc.kind, "status": tc.status, "reason": tc.reason, "message": "m",
				"lastTransitionTime": now.Add(-tc.ago).Format(time.RFC3339),
			}}}}}
			if got := conditionFailure(object, controller, asked, now); (got != nil) != tc.want || got != nil && got.stale {
				t.Errorf("the failure is %+v, want one: %v", got, tc.want)
			}
			if got := conditionFailure(object, controller, time.Time{}, now); got != nil {
				t.Errorf("the failure without a deletion is %+v, want none", got)
			}
		})
	}
}

// A condition without a status, as of Argo CD, says that something happened, not that it still holds.
func TestConditionWithoutStatus(t *testing.T) {
	for name, tc := range map[string]struct {
		kind  string
		ago   time.Duration
		want  bool
		stale bool
	}{
		"a fresh error of the deletion": {"DeletionError", time.Minute, true, false},
		"an old error of the deletion":  {"DeletionError", time.Hour, true, true},
		"an error before the deletion":  {"DeletionError", 3 * time.Hour, false, false},
		"another error":                 {"ComparisonError", time.Minute, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{map[string]any{
				"type": tc.kind, "message": "cluster is gone", "lastTransitionTime": now.Add(-tc.ago).Format(time.RFC3339),
			}}}}}
			got := conditionFailure(object, families.Controller{}, now.Add(-2*time.Hour), now)
			if (got != nil) != tc.want || got != nil && got.stale != tc.stale {
				t.Fatalf("the failure is %+v, want one: %v, stale: %v", got, tc.want, tc.stale)
			}
			if got != nil && !strings.Contains(got.evidence.Text, "condition DeletionError since") {
				t.Errorf("the text is %q", got.evidence.Text)
			}
		})
	}
}
