package gracestorage

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/cmd/kube-apiserver/internal/window"
	"github.com/exeunt-io/exeunt/pkg/graceful"
	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
)

// deletion is what an object said of its deletion before a write. Upstream's functions change the object.
type deletion struct {
	kind graceful.Existing
	// end is the deadline of a graceful deletion.
	end time.Time
	// timestamp, seconds and window are the fields and the annotation as they were; seconds and window may be absent.
	timestamp  string
	seconds    any
	window     string
	hasWindow  bool
	finalizers bool
	// full: another program stored a grace period, and the annotations have no room for a window.
	full    bool
	uid     types.UID
	version string
}

// metadataOf returns the metadata of an object, which may be empty and must not be changed then.
func metadataOf(object *unstructured.Unstructured) map[string]any {
	metadata, _ := object.Object["metadata"].(map[string]any)
	return metadata
}

// hasFinalizers reports whether the metadata has finalizers.
func hasFinalizers(metadata map[string]any) bool {
	switch finalizers := metadata["finalizers"].(type) {
	case []any:
		return len(finalizers) > 0
	case []string: // as unstructured writes them
		return len(finalizers) > 0
	}
	return false
}

// isDeleting reports whether the metadata has a deletion timestamp.
func isDeleting(metadata map[string]any) bool {
	_, deleting := metadata[window.Timestamp].(string)
	return deleting
}

// read returns the deletion of an object.
func read(metadata map[string]any) deletion {
	found := deletion{finalizers: hasFinalizers(metadata)}
	if !isDeleting(metadata) {
		return found
	}
	found.timestamp, _ = metadata[window.Timestamp].(string)
	found.seconds = metadata[window.Seconds]
	annotations, _ := metadata[window.Annotations].(map[string]any)
	found.window, found.hasWindow = annotations[deadline.Annotation].(string)
	found.full = !window.Fits(metadata, window.Length)
	uid, _ := metadata["uid"].(string)
	found.uid = types.UID(uid)
	found.version, _ = metadata["resourceVersion"].(string)
	found.kind, found.end = found.classify()
	return found
}

// classify returns the kind of the deletion and its deadline.
func (d deletion) classify() (graceful.Existing, time.Time) {
	timestamp, err := time.Parse(time.RFC3339, d.timestamp)
	if err != nil {
		return graceful.Plain, time.Time{}
	}
	if d.inGrace() {
		return graceful.Graceful, timestamp
	}
	switch found := deadline.Read(timestamp, d.window); found.Kind() {
	case deadline.Forced:
		return graceful.Forced, timestamp
	case deadline.Graceful: // the deadline is before the deletion timestamp
		return graceful.Graceful, found.Deadline(0)
	default:
		return graceful.Plain, timestamp
	}
}

// inGrace reports whether the object has a grace period that a stock API server would wait for.
func (d deletion) inGrace() bool {
	seconds, _ := d.seconds.(int64)
	return seconds > 0
}

// restore writes the deletion into the metadata of the object after the write. The timestamp of a plain deletion is no
// deadline: the API server may move it, as at stock.
func (d deletion) restore(metadata map[string]any) {
	if d.kind != graceful.Plain {
		metadata[window.Timestamp] = d.timestamp
		metadata[window.Seconds] = d.seconds
		if d.seconds == nil {
			delete(metadata, window.Seconds)
		}
	}
	if !d.hasWindow {
		window.RemoveAnnotation(metadata)
		return
	}
	window.SetAnnotation(metadata, d.window)
}

// keepPlain restores the timestamp of a plain deletion if an inert annotation would bind to the moved timestamp. The
// annotation belongs to another deletion or was written with another clock: the object would be forced by a plain request.
func (d deletion) keepPlain(metadata map[string]any) {
	if d.kind == graceful.Plain && read(metadata).kind != graceful.Plain {
		metadata[window.Timestamp] = d.timestamp
	}
}
