package cluster

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// EventsOf returns the events of the object, oldest first, and whether they were seen.
// Events of objects without a namespace are in the namespace default.
func EventsOf(ctx context.Context, r *Reader, kind string, object metav1.Object) ([]corev1.Event, bool) {
	namespace := object.GetNamespace()
	if namespace == "" {
		namespace = corev1.NamespaceDefault
	}
	all, seen := List(ctx, r, Events, Selection{
		Namespace: namespace,
		Fields:    fields.OneTermEqualSelector("involvedObject.name", object.GetName()).String(),
	})
	var events []corev1.Event
	for _, event := range all {
		if isAbout(event, kind, object) {
			events = append(events, event)
		}
	}
	slices.SortFunc(events, func(a, b corev1.Event) int { return EventTime(a).Compare(EventTime(b)) })
	return events, seen
}

// isAbout reports whether the event is about the object: by its UID; or, of programs that
// write no UID, by its kind and time.
func isAbout(event corev1.Event, kind string, object metav1.Object) bool {
	if uid := event.InvolvedObject.UID; uid != "" {
		return uid == object.GetUID()
	}
	return event.InvolvedObject.Kind == kind && !EventTime(event).Before(object.GetCreationTimestamp().Time)
}

// Component returns the component that sent the event.
func Component(event *corev1.Event) string {
	if event.ReportingController != "" {
		return event.ReportingController
	}
	return event.Source.Component
}

// EventTime returns when the event happened last.
func EventTime(event corev1.Event) time.Time {
	switch {
	case event.Series != nil && !event.Series.LastObservedTime.IsZero():
		return event.Series.LastObservedTime.Time
	case !event.LastTimestamp.IsZero():
		return event.LastTimestamp.Time
	case !event.EventTime.IsZero():
		return event.EventTime.Time
	default:
		return event.CreationTimestamp.Time
	}
}
