package window

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
)

// Fields of metadata.
const (
	Timestamp   = "deletionTimestamp"
	Seconds     = "deletionGracePeriodSeconds"
	Annotations = "annotations"
)

// Serve turns an object as it is in etcd into the served form. It changes the object.
func Serve(object *unstructured.Unstructured) {
	metadata, _ := object.Object["metadata"].(map[string]any)
	text, deleted := metadata[Timestamp].(string)
	if !deleted {
		return
	}
	seconds, present := metadata[Seconds].(int64)
	requested, ok := parse(text)
	if !present || seconds != 0 || !ok {
		return
	}
	end := deadline.Read(requested, Annotation(metadata)).Deadline(0).UTC()
	if !end.After(requested) || end.Year() > 9999 { // plain and forced deletions end at the request
		return
	}
	metadata[Timestamp] = Format(end)
	metadata[Seconds] = int64(end.Sub(requested) / time.Second)
}

// Stored returns an object in the form that it has in etcd. It never changes its argument, which the watch cache and
// other requests may share.
func Stored(object *unstructured.Unstructured) *unstructured.Unstructured {
	metadata, _ := object.Object["metadata"].(map[string]any)
	seconds, _ := metadata[Seconds].(int64)
	if seconds <= 0 {
		return object
	}
	text, _ := metadata[Timestamp].(string)
	end, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return object
	}
	requested := end.Add(-time.Duration(min(seconds, deadline.MaxSeconds)) * time.Second)
	added := !matches(Annotation(metadata), requested, end)
	if added && !Fits(metadata, Length) {
		// Another program stored the grace period. A window above the limit would refuse each removal of a finalizer.
		return object
	}
	stored := maps.Clone(metadata)
	stored[Timestamp] = Format(requested)
	stored[Seconds] = int64(0)
	if added {
		SetAnnotation(stored, deadline.Window{Start: requested, End: end}.String())
	}
	content := maps.Clone(object.Object)
	content["metadata"] = stored
	return &unstructured.Unstructured{Object: content}
}

// matches reports whether the annotation says that the deletion ends at end. Its text then stays, so that a change of
// nothing is no write.
func matches(annotation string, requested, end time.Time) bool {
	return deadline.Read(requested, annotation).Deadline(0).Equal(end)
}

// parse reads a time that Format would write in the same way.
func parse(text string) (time.Time, bool) {
	parsed, _ := time.Parse(time.RFC3339, text) // the zero time, which has another text, if it is no time
	return parsed, Format(parsed) == text
}

// Format writes a time as API servers write it.
func Format(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Length is the length of a window in UTC.
var Length = len(deadline.Window{}.String())

// Fits reports whether the annotations stay within their limit if that of the deletion window has the length.
func Fits(metadata map[string]any, length int) bool {
	size := len(deadline.Annotation) + length
	annotations, _ := metadata[Annotations].(map[string]any)
	for key, value := range annotations {
		if text, _ := value.(string); key != deadline.Annotation {
			size += len(key) + len(text)
		}
	}
	return size <= validation.TotalAnnotationSizeLimitB
}

// Annotation returns the annotation of the deletion window in the metadata of an object.
func Annotation(metadata map[string]any) string {
	annotations, _ := metadata[Annotations].(map[string]any)
	text, _ := annotations[deadline.Annotation].(string)
	return text
}

// SetAnnotation sets the annotation of the deletion window. It replaces the map of annotations, which other objects
// may share.
func SetAnnotation(metadata map[string]any, text string) {
	annotations, _ := metadata[Annotations].(map[string]any)
	copied := make(map[string]any, len(annotations)+1)
	maps.Copy(copied, annotations)
	copied[deadline.Annotation] = text
	metadata[Annotations] = copied
}

// RemoveAnnotation removes the annotation of the deletion window, and the map of annotations if it was the only one.
func RemoveAnnotation(metadata map[string]any) {
	annotations, _ := metadata[Annotations].(map[string]any)
	if _, present := annotations[deadline.Annotation]; !present {
		return
	}
	copied := maps.Clone(annotations)
	delete(copied, deadline.Annotation)
	metadata[Annotations] = copied
	if len(copied) == 0 {
		delete(metadata, Annotations)
	}
}
