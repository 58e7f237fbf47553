package window_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	. "github.com/exeunt-io/exeunt/cmd/kube-apiserver/internal/window"
	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
)

// at returns the time with the number of seconds after noon.
func at(seconds int) time.Time { return time.Date(2026, 1, 1, 12, 0, seconds, 0, time.UTC) }

// span returns the annotation of a window.
func span(start, end int) string { return deadline.Window{Start: at(start), End: at(end)}.String() }

// object returns an object with the fields, of which an empty one is absent.
func object(timestamp string, seconds any, annotation string) *unstructured.Unstructured {
	metadata := map[string]any{"name": "a"}
	if timestamp != "" {
		metadata[Timestamp] = timestamp
	}
	if seconds != nil {
		metadata[Seconds] = seconds
	}
	if annotation != "" {
		metadata[Annotations] = map[string]any{deadline.Annotation: annotation, "other": "1"}
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "A",
		"metadata": metadata}}
}

// text returns the object as JSON.
func text(t testing.TB, object *unstructured.Unstructured) string {
	t.Helper()
	data, err := json.Marshal(object.Object)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestServeAndStored(t *testing.T) {
	for name, tc := range map[string]struct{ etcd, served *unstructured.Unstructured }{
		"not deleted":                {object("", nil, ""), object("", nil, "")},
		"not deleted, with a window": {object("", nil, span(0, 300)), object("", nil, span(0, 300))},
		"plain":                      {object(Format(at(0)), int64(0), ""), object(Format(at(0)), int64(0), "")},
		"graceful":                   {object(Format(at(0)), int64(0), span(0, 300)), object(Format(at(300)), int64(300), span(0, 300))},
		"graceful, clock 3 s off":    {object(Format(at(0)), int64(0), span(3, 300)), object(Format(at(300)), int64(300), span(3, 300))},
		"graceful, other spelling": {object(Format(at(0)), int64(0),
			"2026-01-01T13:00:00+01:00/2026-01-01T12:05:00+00:00"), object(Format(at(300)), int64(300), "2026-01-01T13:00:00+01:00/2026-01-01T12:05:00+00:00")},
		"forced":                         {object(Format(at(0)), int64(0), span(0, 0)), object(Format(at(0)), int64(0), span(0, 0))},
		"deadline has passed at request": {object(Format(at(30)), int64(0), span(0, 10)), object(Format(at(30)), int64(0), span(0, 10))},
		"window of another deletion":     {object(Format(at(100)), int64(0), span(0, 300)), object(Format(at(100)), int64(0), span(0, 300))},
		"timestamp in another spelling":  {object("2026-01-01T12:00:00+00:00", int64(0), span(0, 300)), object("2026-01-01T12:00:00+00:00", int64(0), span(0, 300))},
		"deadline in the year 10000": {
			object("9999-12-31T23:59:00Z", int64(0), "9999-12-31T23:59:00Z/9999-12-31T23:59:30-01:00"),
			object("9999-12-31T23:59:00Z", int64(0), "9999-12-31T23:59:00Z/9999-12-31T23:59:30-01:00"),
		},
		"deadline in the year 9999": {
			object("9999-12-31T23:59:00Z", int64(0), "9999-12-31T23:59:00Z/9999-12-31T23:59:30Z"),
			object("9999-12-31T23:59:30Z", int64(30), "9999-12-31T23:59:00Z/9999-12-31T23:59:30Z"),
		},
		"malformed": {object(Format(at(0)), int64(0), "x"), object(Format(at(0)), int64(0), "x")},
	} {
		t.Run(name, func(t *testing.T) {
			served := tc.etcd.DeepCopy()
			Serve(served)
			if got, want := text(t, served), text(t, tc.served); got != want {
				t.Errorf("served %s, want %s", got, want)
			}
			if got, want := text(t, Stored(served)), text(t, tc.etcd); got != want {
				t.Errorf("stored again %s, want %s", got, want)
			}
			if got, want := text(t, served), text(t, tc.served); got != want {
				t.Errorf("Stored changed its argument to %s", got)
			}
		})
	}
}

// A window that other servers or clients left behind.
func TestStoredRewritesWindowThatDoesNotMatch(t *testing.T) {
	want := text(t, object(Format(at(0)), int64(0), span(0, 30)))
	for name, annotation := range map[string]string{
		"shortened": span(0, 300), "start too far": span(61, 30), "forced": span(30, 30), "malformed": "x",
	} {
		t.Run(name, func(t *testing.T) {
			if got := text(t, Stored(object(Format(at(30)), int64(30), annotation))); got != want {
				t.Errorf("stored %s, want %s", got, want)
			}
		})
	}
	plain := Stored(object(Format(at(30)), int64(30), ""))
	if got := plain.GetAnnotations()[deadline.Annotation]; got != span(0, 30) {
		t.Errorf("window %q of an object that had none", got)
	}
}

func TestStoredNeverHoldsGracePeriod(t *testing.T) {
	for _, seconds := range []int64{1, 300, math.MaxInt32, math.MaxInt64} {
		stored := Stored(object(Format(at(0)), seconds, ""))
		if got := *stored.GetDeletionGracePeriodSeconds(); got != 0 {
			t.Errorf("%d seconds: %d in etcd", seconds, got)
		}
	}
}

// To the byte. Above the limit no write would pass, and none could remove a finalizer.
func TestStoredAddsNoWindowWithoutRoom(t *testing.T) {
	fits := validation.TotalAnnotationSizeLimitB - len("k") - len(deadline.Annotation) - len(span(0, 30))
	for size, want := range map[int]int64{fits: 0, fits + 1: 30} {
		foreign := object(Format(at(30)), int64(30), "")
		foreign.SetAnnotations(map[string]string{"k": strings.Repeat("x", size)})
		before := text(t, foreign)
		stored := Stored(foreign)
		if got := *stored.GetDeletionGracePeriodSeconds(); got != want || want > 0 && text(t, stored) != before {
			t.Errorf("%d bytes: %d seconds in etcd, want %d", size, got, want)
		}
	}
}

func TestCodecHasIdentifierOfItsOwn(t *testing.T) {
	next := runtime.NewCodec(unstructured.UnstructuredJSONScheme, unstructured.UnstructuredJSONScheme)
	if got := NewCodec(next).Identifier(); got == next.Identifier() {
		t.Errorf("identifier %q is that of the codec below", got)
	}
}

// FuzzRoundTrip decodes and encodes values that a stock API server can have written.
func FuzzRoundTrip(f *testing.F) {
	f.Add(at(0).Unix(), "", true)
	f.Add(at(0).Unix(), span(0, 300), true)
	f.Add(at(30).Unix(), span(0, 10), true)
	f.Add(at(0).Unix(), "2026-01-01T13:00:00+01:00/2026-01-01T12:05:00+00:00", true)
	f.Add(at(0).Unix(), "2026-01-01T12:00:00Z/2026-01-01T12:00:00Z", false)
	codec := NewCodec(runtime.NewCodec(unstructured.UnstructuredJSONScheme, unstructured.UnstructuredJSONScheme))
	f.Fuzz(func(t *testing.T, timestamp int64, annotation string, deleted bool) {
		value := object("", nil, annotation)
		if deleted {
			value = object(Format(time.Unix(timestamp%253402300800, 0)), int64(0), annotation)
		}
		if !utf8.ValidString(annotation) {
			return // no value of stock, which decodes and encodes what clients send
		}
		before := text(t, value) + "\n"
		decoded, _, err := codec.Decode([]byte(before), nil, nil)
		if err != nil {
			return // no value of stock
		}
		var after bytes.Buffer
		if err := codec.Encode(decoded, &after); err != nil {
			t.Fatal(err)
		}
		if after.String() != before {
			t.Errorf("%s became %s", before, &after)
		}
		etcd, ours := deadline.Of(value), deadline.Of(decoded.(*unstructured.Unstructured))
		if etcd.Kind() != ours.Kind() || !etcd.Deadline(0).Equal(ours.Deadline(0)) ||
			!etcd.Requested().Equal(ours.Requested()) {
			t.Errorf("%s: %+v in etcd, %+v served", before, etcd, ours)
		}
	})
}

func BenchmarkCodec(b *testing.B) {
	for name, value := range map[string]*unstructured.Unstructured{"live": object("", nil, ""),
		"graceful": object(Format(at(300)), int64(300), span(0, 300))} {
		b.Run(fmt.Sprintf("%s/Stored", name), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Stored(value)
			}
		})
	}
	b.Run("live/Serve", func(b *testing.B) {
		b.ReportAllocs()
		live := object("", nil, "")
		for b.Loop() {
			Serve(live)
		}
	})
}
