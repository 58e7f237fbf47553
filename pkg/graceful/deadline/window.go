package deadline

import (
	"strings"
	"time"
)

// Annotation holds the deletion window of an object, START/END.
const Annotation = "exeunt.io/deletion-window"

// maxSkew is by how much the start of a window and the deletion timestamp may differ: two clocks wrote them. A window
// that was copied from another object, or restored, differs by more.
const maxSkew = time.Minute

// Window is the value of the annotation.
type Window struct {
	// Start binds the window to one deletion: it is the deletion timestamp, but for a difference of clocks.
	Start time.Time
	// End is the deadline. A window that ends at its start is a forced deletion.
	End time.Time
}

// Parse reads an annotation: two times as in RFC 3339, in whole seconds, in any time zone.
func Parse(annotation string) (Window, bool) {
	first, second, _ := strings.Cut(annotation, "/")
	start, ok := parseTime(first)
	if !ok {
		return Window{}, false
	}
	end, ok := parseTime(second)
	return Window{start, end}, ok && !end.Before(start)
}

// day is the least zone that is none. RFC 3339 allows 23:59.
const day = 24 * 60 * 60

// parseTime reads a time, and returns it in UTC. [time.Parse] reads more than RFC 3339 allows, and more than other
// languages do: an hour of one digit, a comma, a zone of a day.
func parseTime(text string) (time.Time, bool) {
	for _, zone := range []string{"+00:00", "-00:00"} {
		if local, ok := strings.CutSuffix(text, zone); ok {
			text = local + "Z"
		}
	}
	parsed, _ := time.Parse(time.RFC3339, text) // the zero time, which has another text, if it is no time
	_, offset := parsed.Zone()
	exact := parsed.Format(time.RFC3339) == text && -day < offset && offset < day
	return parsed.UTC(), exact
}

// Binds reports whether the window belongs to the deletion with the timestamp of a stock API server, which is the
// time of the request.
func (w Window) Binds(timestamp time.Time) bool {
	return w.Start.Sub(timestamp).Abs() <= maxSkew && w.End.Sub(timestamp) <= MaxSeconds*time.Second
}

// String returns the annotation, in UTC.
func (w Window) String() string {
	return w.Start.UTC().Format(time.RFC3339) + "/" + w.End.UTC().Format(time.RFC3339)
}
