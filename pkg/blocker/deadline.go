package blocker

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
)

// Deadline is that of a deletion with a grace period, of a forced deletion, or of a node.
type Deadline struct {
	// Requested is when the deletion was requested, and Time when its grace period ends, in RFC 3339. A forced deletion
	// has the same time twice.
	Requested string `json:"requested"`
	Time      string `json:"time"`
	// Forced: the user asked to end the object at once.
	Forced bool `json:"forced"`
	// Source is FromField for deletionTimestamp and deletionGracePeriodSeconds, FromAnnotation for the annotation
	// exeunt.io/deletion-window. The deadline of a node is in an annotation, or is that of its label or its claim.
	Source Source `json:"source"`
	// Key names the annotation or the field, if it is none of an object in its grace period.
	Key string `json:"-"`
}

// DeadlineOf returns the deadline of the object's deletion, nil for an object that lives or was deleted without a grace
// period. Only custom resources have it in an annotation: operators copy their annotations to claims and pods.
func DeadlineOf(object metav1.Object, custom bool) *Deadline {
	deletion := deadline.Of(object)
	if deletion.Kind() != deadline.Graceful && !deletion.Forced() {
		return nil
	}
	found := Deadline{Requested: Time(deletion.Requested()), Time: Time(deletion.Deadline(0)), Forced: deletion.Forced(),
		Source: FromAnnotation}
	if seconds := object.GetDeletionGracePeriodSeconds(); seconds != nil && *seconds > 0 {
		found.Source = FromField
	} else if !custom {
		return nil
	}
	return &found
}

// Where names the field or the annotation that has the deadline.
func (d Deadline) Where() string {
	if d.Key != "" {
		return d.Key
	}
	if d.Source == FromField {
		return "metadata.deletionTimestamp"
	}
	return deadline.Annotation
}

// Passed reports whether the grace period has ended.
func (d Deadline) Passed(now time.Time) bool {
	end, err := time.Parse(time.RFC3339, d.Time)
	return err == nil && !end.After(now)
}

// Evidence says until when the object may end gracefully.
func (d Deadline) Evidence() Evidence {
	if d.Forced {
		return Evidence{d.Source, fmt.Sprintf("%s: forced at %s, the object is to end at once", d.Where(), d.Requested)}
	}
	return Evidence{d.Source, fmt.Sprintf("%s: the object may end gracefully until %s, %s", d.Where(), d.Time, d.Length())}
}

// Length says how long the grace period is, and since when it counts.
func (d Deadline) Length() string {
	start, _ := time.Parse(time.RFC3339, d.Requested)
	end, _ := time.Parse(time.RFC3339, d.Time)
	return fmt.Sprintf("%d s after the request of %s", int64(end.Sub(start)/time.Second), d.Requested)
}
