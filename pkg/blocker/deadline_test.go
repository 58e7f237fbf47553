package blocker_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
)

func TestDeadlineOf(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	window := func(length time.Duration) map[string]string {
		return map[string]string{deadline.Annotation: deadline.Window{Start: noon, End: noon.Add(length)}.String()}
	}
	for name, tc := range map[string]struct {
		timestamp   time.Time // zero for an object that lives
		seconds     int64
		annotations map[string]string
		evidence    string // "" for no deadline
		source      blocker.Source
	}{
		"lives, with a window": {annotations: window(time.Minute)},
		"plain":                {timestamp: noon},
		"window of another deletion": {timestamp: noon.Add(time.Hour),
			annotations: window(time.Minute)},
		"in the fields": {noon.Add(5 * time.Minute), 300, nil,
			"metadata.deletionTimestamp: the object may end gracefully until 2026-01-01T12:05:00Z, 300 s after the request of 2026-01-01T12:00:00Z", blocker.FromField},
		"in the fields and the annotation": {noon.Add(5 * time.Minute), 300, window(5 * time.Minute),
			"metadata.deletionTimestamp: the object may end gracefully until 2026-01-01T12:05:00Z, 300 s after the request of 2026-01-01T12:00:00Z", blocker.FromField},
		"in the annotation": {noon, 0, window(5 * time.Minute),
			"exeunt.io/deletion-window: the object may end gracefully until 2026-01-01T12:05:00Z, 300 s after the request of 2026-01-01T12:00:00Z", blocker.FromAnnotation},
		"forced": {noon, 0, window(0),
			"exeunt.io/deletion-window: forced at 2026-01-01T12:00:00Z, the object is to end at once", blocker.FromAnnotation},
	} {
		t.Run(name, func(t *testing.T) {
			object := &metav1.ObjectMeta{Annotations: tc.annotations}
			if !tc.timestamp.IsZero() {
				object.DeletionTimestamp = ptr.To(metav1.NewTime(tc.timestamp))
				object.DeletionGracePeriodSeconds = &tc.seconds
			}
			got := blocker.DeadlineOf(object, true)
			switch want := (blocker.Evidence{Source: tc.source, Text: tc.evidence}); {
			case got == nil && tc.evidence == "":
			case got == nil || got.Evidence() != want:
				t.Errorf("DeadlineOf() = %+v, want %v", got, want)
			case got.Passed(noon.Add(time.Minute)) != got.Forced, !got.Passed(noon.Add(5 * time.Minute)):
				t.Errorf("%+v has passed a minute after noon, or has not after five", got)
			}
		})
	}
}

// An operator copies the annotations of its object to the claims that it makes and deletes: a claim has no grace period.
func TestCopiedAnnotationIsNoDeadlineOfBuiltInKind(t *testing.T) {
	at := time.Unix(1000, 0)
	claim := &metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: at}, DeletionGracePeriodSeconds: ptr.To[int64](0),
		Annotations: map[string]string{
			deadline.Annotation: deadline.Window{Start: at.Add(-5 * time.Second), End: at.Add(time.Hour)}.String()}}
	if got := blocker.DeadlineOf(claim, false); got != nil {
		t.Errorf("%+v", got)
	}
	claim.DeletionGracePeriodSeconds = ptr.To[int64](30) // a pod has its deadline in the field
	if got := blocker.DeadlineOf(claim, false); got == nil || got.Source != blocker.FromField {
		t.Errorf("%+v", got)
	}
}
