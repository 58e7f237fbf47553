package cluster

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// EventsOf returns the events of the object, oldest first, and whether they were seen.
// namespace is that of the events: "default" for objects without a namespace.
func EventsOf(ctx context.Context, r *Reader, namespace, uid string) ([]corev1.Event, bool) {
	if namespace == "" {
		namespace = corev1.NamespaceDefault
	}
	events, seen := List(ctx, r, Events, Selection{
		Namespace: namespace,
		Fields:    fields.OneTermEqualSelector("involvedObject.uid", uid).String(),
	})
	events = slices.Clone(events)
	slices.SortFunc(events, func(a, b corev1.Event) int { return EventTime(a).Compare(EventTime(b)) })
	return events, seen
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
