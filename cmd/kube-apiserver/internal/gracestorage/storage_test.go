package gracestorage

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/cmd/kube-apiserver/internal/window"
	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
)

// warnings are what a client reads.
type warnings []string

func (w *warnings) AddWarning(_, text string) { *w = append(*w, text) }

// noon is the time of the first request of each test.
var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// world is one object in the storage, at a time.
type world struct {
	t    *testing.T
	now  time.Time
	etcd *memory
	s    *Storage
}

// newWorld returns a live object with finalizers.
func newWorld(t *testing.T, finalizers ...string) *world {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "A",
		"metadata": map[string]any{"name": "a", "uid": "u"}, "spec": map[string]any{"x": "1"}}}
	if len(finalizers) > 0 {
		object.SetFinalizers(finalizers)
	}
	w := &world{t: t, now: noon, etcd: &memory{}}
	if err := w.etcd.write(object); err != nil {
		t.Fatal(err)
	}
	w.s = &Storage{Interface: w.etcd, resource: schema.GroupResource{Group: "example.com", Resource: "as"},
		now: func() time.Time { return w.now }}
	return w
}

// update runs a GuaranteedUpdate and returns the answer.
func (w *world) update(ctx context.Context,
	change func(*unstructured.Unstructured) error) (*unstructured.Unstructured, error) {
	answer := &unstructured.Unstructured{}
	err := w.s.GuaranteedUpdate(ctx, "a", answer, false, &storage.Preconditions{},
		storage.SimpleUpdate(func(existing runtime.Object) (runtime.Object, error) {
			object, _ := existing.(*unstructured.Unstructured)
			return object, change(object)
		}), nil)
	return answer, err
}

// markAsDeleting does to an object what a stock API server does in a DELETE.
func (w *world) markAsDeleting(object *unstructured.Unstructured) error {
	metadata := metadataOf(object)
	if timestamp := object.GetDeletionTimestamp(); timestamp == nil || timestamp.After(w.now) {
		metadata[window.Timestamp] = window.Format(w.now)
	}
	metadata[window.Seconds] = int64(0)
	return nil
}

// delete sends a DELETE with a grace period, nil for none.
func (w *world) delete(grace *int64) (deadline.Deletion, warnings) {
	w.t.Helper()
	var heard warnings
	ctx := withHolder(warning.WithWarningRecorder(w.t.Context(), &heard))
	holderFrom(ctx).seconds.Store(grace)
	if _, err := w.update(ctx, w.markAsDeleting); err != nil {
		w.t.Fatal(err)
	}
	return deadline.Of(w.etcd.read(w.t)), heard
}

func TestDeadlineOnlyMovesEarlier(t *testing.T) {
	w := newWorld(t, "f")
	for _, step := range []struct {
		after   int // seconds after noon
		grace   *int64
		kind    deadline.Kind
		end     int // seconds after noon
		warning string
	}{
		{0, ptr.To[int64](300), deadline.Graceful, 300, ""},
		{10, nil, deadline.Graceful, 300, ""},
		{20, ptr.To[int64](280), deadline.Graceful, 300, "stays 2026-01-01T12:05:00Z"},
		{20, ptr.To[int64](279), deadline.Graceful, 299, ""},
		{100, ptr.To[int64](150), deadline.Graceful, 250, ""},
		{100, ptr.To[int64](-1), deadline.Graceful, 101, ""},
		{200, ptr.To[int64](1), deadline.Graceful, 101, "stays"},
		{200, nil, deadline.Graceful, 101, ""},
		{200, ptr.To[int64](0), deadline.Forced, 101, ""},
		{300, ptr.To[int64](0), deadline.Forced, 101, ""},
		{300, ptr.To[int64](10), deadline.Forced, 101, ""},
	} {
		w.now = noon.Add(time.Duration(step.after)*time.Second + 999*time.Millisecond)
		got, heard := w.delete(step.grace)
		if want := noon.Add(time.Duration(step.end) * time.Second); got.Kind() != step.kind || !got.Deadline(0).Equal(want) {
			t.Errorf("after %d s: %v until %v, want %v until %v", step.after, got.Kind(), got.Deadline(0), step.kind, want)
		}
		if text := strings.Join(heard, "; "); (text == "") != (step.warning == "") || !strings.Contains(text, step.warning) {
			t.Errorf("after %d s: warning %q, want %q", step.after, text, step.warning)
		}
		if stored := string(w.etcd.data); !strings.Contains(stored, `"deletionGracePeriodSeconds":0`) {
			t.Errorf("in etcd: %s", stored)
		}
	}
}

func TestLastFinalizerRemovesObjectInGrace(t *testing.T) {
	w := newWorld(t, "f")
	w.delete(ptr.To[int64](300))
	answer, err := w.update(t.Context(), func(object *unstructured.Unstructured) error {
		object.SetFinalizers(nil)
		return nil
	})
	if err != nil || w.etcd.data != nil || answer.GetName() != "a" || len(answer.GetFinalizers()) > 0 {
		t.Errorf("%v, in etcd %s, answer %v", err, w.etcd.data, answer.Object)
	}
}

func TestRemovalIsRepeatedAfterConflict(t *testing.T) {
	for name, tc := range map[string]struct {
		disturb func(w *world)
		gone    bool
	}{
		"label was set": {func(w *world) {
			object := w.etcd.read(w.t)
			object.SetLabels(map[string]string{"a": "b"})
			_ = w.etcd.write(object)
		}, true},
		"object is gone": {func(w *world) { w.etcd.data = nil }, true},
		"finalizer was added": {func(w *world) {
			object := w.etcd.read(w.t)
			object.SetFinalizers([]string{"f", "other"})
			_ = w.etcd.write(object)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "f")
			w.delete(ptr.To[int64](300))
			w.etcd.disturb = func() { tc.disturb(w) }
			_, err := w.update(t.Context(), func(object *unstructured.Unstructured) error {
				kept := []string{}
				for _, finalizer := range object.GetFinalizers() {
					if finalizer != "f" {
						kept = append(kept, finalizer)
					}
				}
				object.SetFinalizers(kept)
				return nil
			})
			if err != nil || (w.etcd.data == nil) != tc.gone {
				t.Errorf("%v, in etcd %s", err, w.etcd.data)
			}
		})
	}
}

func TestFormOfEtcdIsAccepted(t *testing.T) {
	immutable := apierrors.NewInvalid(schema.GroupKind{Kind: "A"}, "a",
		field.ErrorList{field.Invalid(field.NewPath("metadata", window.Seconds), 0, "field is immutable")})
	other := apierrors.NewInvalid(schema.GroupKind{Kind: "A"}, "a",
		field.ErrorList{field.Invalid(field.NewPath("spec"), 0, "no")})
	for name, tc := range map[string]struct {
		first, second error // of the update function
		want          error
	}{
		"refused once":            {immutable, nil, nil},
		"refused twice":           {immutable, immutable, immutable},
		"second refusal counts":   {immutable, other, other},
		"another field":           {other, nil, other},
		"another kind of error":   {errors.New("x"), nil, errors.New("x")},
		"not refused, no 2nd try": {nil, other, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "f")
			want, _ := w.delete(ptr.To[int64](300))
			_, err := w.update(t.Context(), func(object *unstructured.Unstructured) error {
				if *object.GetDeletionGracePeriodSeconds() > 0 {
					object.SetFinalizers(nil) // the second try must see neither
					_ = unstructured.SetNestedField(object.Object, "2", "spec", "x")
					if tc.first == nil {
						object.SetFinalizers([]string{"f"})
						_ = unstructured.SetNestedField(object.Object, "1", "spec", "x")
					}
					return tc.first
				}
				return tc.second
			})
			if fmt.Sprint(err) != fmt.Sprint(tc.want) {
				t.Errorf("%v, want %v", err, tc.want)
			}
			if got := deadline.Of(w.etcd.read(t)); got != want || len(w.etcd.read(t).GetFinalizers()) != 1 ||
				!strings.Contains(string(w.etcd.data), `"x":"1"`) {
				t.Errorf("%+v, want %+v; in etcd %s", got, want, w.etcd.data)
			}
		})
	}
}

func TestWriteWithoutHolderIsNoRequest(t *testing.T) {
	w := newWorld(t, "f") // #21: the API server deletes the objects of a CRD
	w.annotate(deadline.Annotation, deadline.Window{Start: noon, End: noon.Add(time.Hour)}.String())
	if _, err := w.update(t.Context(), w.markAsDeleting); err != nil {
		t.Fatal(err)
	}
	if got := deadline.Of(w.etcd.read(t)); got.Kind() != deadline.Unspecified {
		t.Errorf("%v", got.Kind())
	}
	w = newWorld(t, "f")
	want, _ := w.delete(ptr.To[int64](300))
	version := w.etcd.version
	if _, err := w.update(t.Context(), w.markAsDeleting); err != nil {
		t.Fatal(err)
	}
	if got := deadline.Of(w.etcd.read(t)); got != want || w.etcd.version != version {
		t.Errorf("%+v, want %+v; version %d, was %d", got, want, w.etcd.version, version)
	}
}

// annotate writes an annotation, and no DELETE.
func (w *world) annotate(key, value string) {
	w.t.Helper()
	_, err := w.update(w.t.Context(), func(object *unstructured.Unstructured) error {
		annotations := object.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[key] = value
		object.SetAnnotations(annotations)
		return nil
	})
	if err != nil {
		w.t.Error(err)
	}
}

// #37: the annotation of a plain deletion, which is none, stays.
func TestPlainDeletionGetsNoWindow(t *testing.T) {
	w := newWorld(t, "f")
	w.delete(nil)
	w.annotate(deadline.Annotation, deadline.Window{Start: noon, End: noon.Add(time.Hour)}.String())
	if got := w.etcd.read(t); deadline.Of(got).Kind() != deadline.Unspecified || len(got.GetAnnotations()) > 0 {
		t.Errorf("in etcd %s", w.etcd.data)
	}
}

// #15: the annotations have room for the window, to the byte. A write then still fits.
func TestWindowNeedsRoom(t *testing.T) {
	fits := validation.TotalAnnotationSizeLimitB - len("k") - len(deadline.Annotation) - len(deadline.Window{}.String())
	for size, want := range map[int]deadline.Kind{fits: deadline.Graceful, fits + 1: deadline.Unspecified} {
		w := newWorld(t, "f")
		w.annotate("k", strings.Repeat("x", size))
		got, heard := w.delete(ptr.To[int64](300))
		if got.Kind() != want || (len(heard) == 0) != (want == deadline.Graceful) {
			t.Errorf("%d bytes: %v, warnings %q; want %v", size, got.Kind(), heard, want)
		}
		w.annotate("k", strings.Repeat("y", size))
	}
}

// #14
func TestGracePeriodIsLimited(t *testing.T) {
	w := newWorld(t, "f")
	got, heard := w.delete(ptr.To[int64](math.MaxInt64))
	if want := noon.Add(math.MaxInt32 * time.Second); !got.Deadline(0).Equal(want) || len(heard) != 1 ||
		!strings.Contains(heard[0], "limited to 2147483647") {
		t.Errorf("%v, want %v; warnings %q", got.Deadline(0), want, heard)
	}
}

// #17: another program stored a grace period above 0, which a stock API server never removes.
func TestGracePeriodInEtcdBecomesWindow(t *testing.T) {
	w := newWorld(t, "f")
	w.etcd.data = []byte(`{"apiVersion":"example.com/v1","kind":"A","metadata":{"name":"a","uid":"u","finalizers":["f"],"deletionTimestamp":"2026-01-01T12:05:00Z","deletionGracePeriodSeconds":300}}` + "\n")
	if _, err := w.update(t.Context(), func(*unstructured.Unstructured) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if got := deadline.Of(w.etcd.read(t)); got.Kind() != deadline.Graceful ||
		!got.Deadline(0).Equal(noon.Add(5*time.Minute)) || !strings.Contains(string(w.etcd.data), `Seconds":0`) {
		t.Errorf("%+v, in etcd %s", got, w.etcd.data)
	}
	w.etcd.data = []byte(strings.Replace(string(w.etcd.data), `"finalizers":["f"],`, "", 1))
	if _, err := w.update(t.Context(), func(*unstructured.Unstructured) error { return nil }); err != nil ||
		w.etcd.data != nil {
		t.Errorf("%v, in etcd %s", err, w.etcd.data)
	}
}

// #17: without room for a window the object stays as the other program wrote it, and its finalizers can go.
func TestGracePeriodInEtcdWithoutRoom(t *testing.T) {
	w := newWorld(t, "f", "g")
	object := w.etcd.read(t)
	object.SetAnnotations(map[string]string{"k": strings.Repeat("x", validation.TotalAnnotationSizeLimitB-1)})
	metadata := metadataOf(object)
	metadata[window.Timestamp], metadata[window.Seconds] = window.Format(noon.Add(5*time.Minute)), int64(300)
	if err := w.etcd.write(object); err != nil {
		t.Fatal(err)
	}
	version := w.etcd.version
	for _, request := range []struct {
		grace   *int64
		warning string
	}{{nil, ""}, {ptr.To[int64](0), "no room"}, {ptr.To[int64](10), "no room"}, {ptr.To[int64](600), "stays"}} {
		_, heard := w.delete(request.grace)
		if text := strings.Join(heard, "; "); (text == "") != (request.warning == "") || !strings.Contains(text, request.warning) {
			t.Errorf("warning %q, want %q", text, request.warning)
		}
	}
	if w.etcd.version != version {
		t.Errorf("version %d, was %d; in etcd %.200s", w.etcd.version, version, w.etcd.data)
	}
	for left := 1; left >= 0; left-- {
		if _, err := w.update(t.Context(), func(object *unstructured.Unstructured) error {
			object.SetFinalizers(object.GetFinalizers()[:left])
			return nil
		}); err != nil {
			t.Errorf("%d finalizers left: %v", left, err)
		}
	}
	if w.etcd.data != nil {
		t.Errorf("in etcd %.200s", w.etcd.data)
	}
}

func BenchmarkUpdateOfLiveObject(b *testing.B) {
	object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a", "uid": "u",
		"annotations": map[string]any{"a": "b"}}}}
	update := func(existing runtime.Object, _ storage.ResponseMeta) (runtime.Object, *uint64, error) {
		return existing, nil, nil
	}
	for name, run := range map[string]storage.UpdateFunc{
		"stock": update,
		"ours": func(existing runtime.Object, response storage.ResponseMeta) (runtime.Object, *uint64, error) {
			w := &write{update: update, holder: holderFrom(b.Context()), now: time.Now}
			return w.try(existing, response)
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := run(object, storage.ResponseMeta{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
