package gracestorage

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/cmd/kube-apiserver/internal/window"
	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
)

// store puts an object into etcd as another program stored it.
func (w *world) store(metadata string) {
	w.etcd.data = []byte(`{"apiVersion":"example.com/v1","kind":"A","metadata":{"name":"a","uid":"u","finalizers":["f"],` +
		metadata + "}}\n")
}

// filler returns an annotation that leaves room for a number of bytes.
func filler(room int) string {
	return fmt.Sprintf(`"k":%q`, strings.Repeat("x", validation.TotalAnnotationSizeLimitB-len("k")-room))
}

const plainAtNoon = `"deletionTimestamp":"2026-01-01T12:00:00Z","deletionGracePeriodSeconds":0`

// label is a write that is no DELETE.
func label(object *unstructured.Unstructured) error {
	object.SetLabels(map[string]string{"l": "1"})
	return nil
}

// #15, #37: no stored object has annotations above the limit, which no write could lower.
func TestWriteNeedsRoomForItsWindow(t *testing.T) {
	forced := deadline.Window{Start: noon, End: noon}.String()
	for name, tc := range map[string]struct {
		metadata string
		grace    *int64 // nil: another write
		room     bool
	}{
		"forced, none left": {plainAtNoon + `,"annotations":{"` + deadline.Annotation + `":"` + forced + `",` + filler(10) + `}`,
			nil, false},
		"grace of another program": {`"deletionTimestamp":"2026-01-01T12:05:00Z","deletionGracePeriodSeconds":300,"annotations":{` +
			filler(10) + `}`, nil, true}, // stays as the program wrote it
		"plain, full": {plainAtNoon + `,"annotations":{` + filler(0) + `}`, nil, true},
		"plain, malformed window": {plainAtNoon + `,"annotations":{"` + deadline.Annotation + `":"x",` +
			filler(len(deadline.Annotation)+1) + `}`, ptr.To[int64](0), false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.store(tc.metadata)
			if tc.grace != nil {
				got, heard := w.delete(tc.grace)
				if got.Forced() != tc.room || (len(heard) == 0) != tc.room {
					t.Errorf("%v, warnings %q", got.Kind(), heard)
				}
				return
			}
			_, err := w.update(t.Context(), label)
			if (err == nil) != tc.room || err != nil && (!apierrors.IsInvalid(err) ||
				!strings.Contains(err.Error(), deadline.Annotation)) {
				t.Errorf("%v, want room %t", err, tc.room)
			}
		})
	}
}

// #8, #11: the deadline of an object whose window ended before the deletion timestamp has passed.
func TestPassedDeadlineStays(t *testing.T) {
	w := newWorld(t)
	w.store(`"deletionTimestamp":"2026-01-01T12:00:30Z","deletionGracePeriodSeconds":0,"annotations":{"` + deadline.Annotation +
		`":"` + deadline.Window{Start: noon, End: noon.Add(10 * time.Second)}.String() + `"}`)
	if got, heard := w.delete(ptr.To[int64](300)); got.Kind() != deadline.Graceful || len(heard) != 1 ||
		!strings.Contains(heard[0], "stays 2026-01-01T12:00:10Z") {
		t.Errorf("%v, warnings %q", got.Kind(), heard)
	}
}

// #35, #37: the deletion of an object is the server's, whatever a write says.
func TestWriteKeepsDeletion(t *testing.T) {
	for name, grace := range map[string]*int64{"plain": nil, "forced": ptr.To[int64](0), "graceful": ptr.To[int64](300)} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "f")
			want, _ := w.delete(grace)
			before := string(w.etcd.data)
			_, err := w.update(t.Context(), func(object *unstructured.Unstructured) error {
				object.SetAnnotations(map[string]string{deadline.Annotation: deadline.Window{Start: noon, End: noon.Add(time.Hour)}.String()})
				if name != "plain" { // whose timestamp is no deadline
					delete(metadataOf(object), window.Timestamp)
					delete(metadataOf(object), window.Seconds)
				}
				return nil
			})
			if got := deadline.Of(w.etcd.read(t)); err != nil || got != want || string(w.etcd.data) != before {
				t.Errorf("%v, %+v, want %+v; in etcd %s", err, got, want, w.etcd.data)
			}
		})
	}
}

// #17: while there is room for the window of a grace period that another program stored, no write may take it. A plain
// deletion needs none.
func TestWriteLeavesRoomForWindow(t *testing.T) {
	for metadata, refused := range map[string]bool{
		`"deletionTimestamp":"2026-01-01T12:05:00Z","deletionGracePeriodSeconds":300`: true, plainAtNoon: false} {
		w := newWorld(t)
		w.store(metadata)
		_, err := w.update(t.Context(), func(object *unstructured.Unstructured) error {
			object.SetAnnotations(map[string]string{"k": strings.Repeat("x", validation.TotalAnnotationSizeLimitB-10)})
			return nil
		})
		if apierrors.IsInvalid(err) != refused || !refused && err != nil {
			t.Errorf("%s: %v, in etcd %.300s", metadata, err, w.etcd.data)
		}
	}
}

func TestAbsentGracePeriodStaysAbsent(t *testing.T) {
	w := newWorld(t)
	w.store(`"deletionTimestamp":"2026-01-01T12:00:00Z","annotations":{"` + deadline.Annotation + `":"` +
		deadline.Window{Start: noon, End: noon}.String() + `"}`)
	if _, err := w.update(t.Context(), label); err != nil || strings.Contains(string(w.etcd.data), window.Seconds) {
		t.Errorf("%v, in etcd %s", err, w.etcd.data)
	}
}

// A DELETE that leaves the object alive gives it no deadline.
func TestLiveObjectGetsNoDeadline(t *testing.T) {
	w := newWorld(t, "f")
	ctx := withHolder(t.Context())
	holderFrom(ctx).seconds.Store(ptr.To[int64](300))
	if _, err := w.update(ctx, label); err != nil || isDeleting(metadataOf(w.etcd.read(t))) {
		t.Errorf("%v, in etcd %s", err, w.etcd.data)
	}
}

// #14: the limit itself is no reason for a warning, and a refusal has its own.
func TestLimitWarnsOnlyWhenItCounts(t *testing.T) {
	w := newWorld(t, "f")
	if _, heard := w.delete(ptr.To[int64](deadline.MaxSeconds)); len(heard) > 0 {
		t.Errorf("warnings %q", heard)
	}
	if _, heard := w.delete(ptr.To[int64](deadline.MaxSeconds + 1)); len(heard) != 1 || !strings.Contains(heard[0], "stays") {
		t.Errorf("warnings %q", heard)
	}
}

// #36: only an object in its grace period has two forms, and a DELETE sends neither.
func TestUpdateIsTriedOnceWithOneForm(t *testing.T) {
	refused := apierrors.NewInvalid(schema.GroupKind{Kind: "A"}, "a", nil)
	refused.ErrStatus.Details.Causes = []metav1.StatusCause{{Field: "metadata." + window.Seconds}}
	for name, tc := range map[string]struct {
		grace  *int64
		holder bool
		want   int
	}{"graceful": {ptr.To[int64](300), false, 2}, "plain": {nil, false, 1}, "DELETE": {ptr.To[int64](300), true, 1}} {
		t.Run(name, func(t *testing.T) {
			w, ctx, tries := newWorld(t, "f"), t.Context(), 0
			w.delete(tc.grace)
			if tc.holder {
				ctx = withHolder(ctx)
			}
			_, err := w.update(ctx, func(*unstructured.Unstructured) error {
				if tries++; tries == 1 {
					return refused
				}
				return fmt.Errorf("second: %w", refused)
			})
			if !errors.Is(err, error(refused)) || strings.Contains(fmt.Sprint(err), "second") || tries != tc.want {
				t.Errorf("%d tries, want %d: %v, want the first refusal", tries, tc.want, err)
			}
		})
	}
}

func TestNamesSecondsOnlyInRefusalOfField(t *testing.T) {
	cause := []metav1.StatusCause{{Field: "metadata." + window.Seconds}}
	conflict := apierrors.NewConflict(schema.GroupResource{}, "a", nil)
	conflict.ErrStatus.Details.Causes = cause
	bare := apierrors.NewInvalid(schema.GroupKind{}, "a", nil)
	bare.ErrStatus.Details = nil
	for name, err := range map[string]error{"conflict": conflict, "no details": bare, "no status": errors.New("x"), "nil": nil} {
		if namesSeconds(err) {
			t.Errorf("%s names the field", name)
		}
	}
}

func TestFinalizersInBothForms(t *testing.T) {
	for name, tc := range map[string]struct {
		finalizers any
		want       bool
	}{
		"decoded": {[]any{"f"}, true}, "decoded, empty": {[]any{}, false}, "set": {[]string{"f"}, true},
		"set, empty": {[]string{}, false}, "absent": {nil, false},
	} {
		if got := hasFinalizers(map[string]any{"finalizers": tc.finalizers}); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// What is no custom resource goes through as it is.
func TestOtherObjectsAreNotDecidedOn(t *testing.T) {
	other := &metav1.Status{}
	w := &write{update: func(runtime.Object, storage.ResponseMeta) (runtime.Object, *uint64, error) {
		return other, nil, nil
	}}
	for _, existing := range []runtime.Object{other, &unstructured.Unstructured{Object: map[string]any{}}} {
		if got, _, err := w.try(existing, storage.ResponseMeta{}); got != other || err != nil {
			t.Errorf("%v, %v", got, err)
		}
	}
	world := newWorld(t, "f")
	if err := world.s.GuaranteedUpdate(t.Context(), "a", other, false, nil, w.update, nil); err == nil {
		t.Error("the response is no custom resource")
	}
	ctx := withHolder(t.Context())
	holderFrom(ctx).seconds.Store(ptr.To[int64](300))
	if err := world.s.Delete(ctx, "a", other, &storage.Preconditions{}, nil, nil, storage.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

// #31: etcd fails in between.
func TestFailedRemovalIsReported(t *testing.T) {
	w := newWorld(t, "f")
	w.delete(ptr.To[int64](300))
	w.etcd.failure = errors.New("etcd is away")
	if _, err := w.update(t.Context(), func(object *unstructured.Unstructured) error {
		object.SetFinalizers(nil)
		return nil
	}); !errors.Is(err, w.etcd.failure) || w.etcd.data == nil {
		t.Errorf("%v, in etcd %s", err, w.etcd.data)
	}
}
