package integration

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
)

// ours returns the client of our API server.
func ours(t *testing.T) *server { return mustServe(t, shared.ours) }

func mustServe(t *testing.T, start func() (*server, error)) *server {
	t.Helper()
	s, err := start()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// deletion is what a client sees of a deletion.
type deletion struct {
	kind deadline.Kind
	// field is deletionGracePeriodSeconds, -1 if it is absent.
	field int64
	// end is the deadline, of a graceful deletion.
	end time.Time
}

func deletionOf(object *unstructured.Unstructured) deletion {
	read := deadline.Of(object)
	found := deletion{kind: read.Kind(), field: -1}
	if seconds := object.GetDeletionGracePeriodSeconds(); seconds != nil {
		found.field = *seconds
	}
	if read.Kind() == deadline.Graceful {
		found.end = read.Deadline(0)
	}
	return found
}

// expect wants the same deletion of an object in the answer of a request, in a GET, at a stock API server by the
// annotation, and in etcd, where the grace period is always 0.
func (k kind) expect(got answer, name string, want deletion) {
	k.t.Helper()
	if got.code != http.StatusOK {
		k.t.Fatalf("%d %s", got.code, got.text)
	}
	for place, object := range map[string]*unstructured.Unstructured{"answer": got.body, "GET": k.get(name).body} {
		if found := deletionOf(object); found != want {
			k.t.Errorf("%s: %+v, want %+v\n%v", place, found, want, object.Object["metadata"])
		}
		if timestamp := object.GetDeletionTimestamp(); want.field > 0 && !timestamp.Time.Equal(want.end) {
			k.t.Errorf("%s: deletionTimestamp %v, want the deadline %v", place, timestamp, want.end)
		}
	}
	stored := deletionOf(k.inEtcd(name))
	if stored.kind != want.kind || !stored.end.Equal(want.end) || stored.field > 0 {
		k.t.Errorf("in etcd: %+v, want %+v and 0 seconds", stored, want)
	}
}

// within wants a deadline after a grace period that begins between two times.
func within(t *testing.T, got time.Time, seconds int, earliest, latest time.Time) {
	t.Helper()
	grace := time.Duration(seconds) * time.Second
	if first, last := earliest.Add(grace).Truncate(time.Second), latest.Add(grace); got.Before(first) || got.After(last) {
		t.Errorf("deadline %v, want between %v and %v", got, first, last)
	}
}

// gone wants that an object does not exist.
func (k kind) gone(name string) {
	k.t.Helper()
	if got := k.get(name); got.code != http.StatusNotFound {
		k.t.Errorf("%s exists: %d %s", name, got.code, got.text)
	}
	if text, _ := k.stored(name); text != "" {
		k.t.Errorf("%s is in etcd: %s", name, text)
	}
}

// warned wants a warning with the words, or none at all.
func warned(t *testing.T, got answer, words string) {
	t.Helper()
	if words == "" && len(got.warnings) > 0 {
		t.Errorf("warnings %q, want none", got.warnings)
	}
	if words != "" && !slices.ContainsFunc(got.warnings, func(text string) bool { return strings.Contains(text, words) }) {
		t.Errorf("warnings %q, want %q", got.warnings, words)
	}
}

// graceful deletes an object with a grace period, and returns the answer and the deletion.
func (k kind) graceful(name string, seconds int) (answer, deletion) {
	k.t.Helper()
	before := time.Now()
	got := k.delete(name, seconds, nil)
	found := deletionOf(got.body)
	if found.kind != deadline.Graceful || found.field != int64(seconds) {
		k.t.Fatalf("delete %s with %d s: %+v, %d %s", name, seconds, found, got.code, got.text)
	}
	within(k.t, found.end, seconds, before, time.Now())
	k.expect(got, name, found)
	return got, found
}

const finalizer, second = "example.com/a", "example.com/b"

var (
	plain  = deletion{kind: deadline.Unspecified}
	forced = deletion{kind: deadline.Forced}
)

// withoutFinalizers is a merge patch.
const withoutFinalizers = `{"metadata":{"finalizers":null}}`

func annotate(value string) string {
	return fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, deadline.Annotation, value)
}
