package gracestorage

import (
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
)

// #21: a server whose clock was ahead wrote the deletion timestamp. A plain deletion has no deadline to keep, and a stock
// API server moves the timestamp to its own time.
func TestPlainDeletionAheadOfClockIsThatOfStock(t *testing.T) {
	for name, inert := range map[string]string{"no window": "", "inert window": "x"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "f")
			w.now = noon.Add(30 * time.Second)
			w.delete(nil)
			if inert != "" { // set at another API server
				object := w.etcd.read(t)
				object.SetAnnotations(map[string]string{deadline.Annotation: inert})
				if err := w.etcd.write(object); err != nil {
					t.Fatal(err)
				}
			}
			w.now = noon
			if _, err := w.update(t.Context(), w.markAsDeleting); err != nil {
				t.Fatal(err)
			}
			got := w.etcd.read(t)
			if !got.GetDeletionTimestamp().Time.Equal(noon) || got.GetAnnotations()[deadline.Annotation] != inert {
				t.Errorf("in etcd %s, want %v", w.etcd.data, noon)
			}
		})
	}
}

// A server whose clock is ahead has deleted the object, and its window has no effect: the request that moves the timestamp
// does not put the window in force.
func TestPlainDeletionStaysPlainAsItsTimeMoves(t *testing.T) {
	for name, end := range map[string]time.Duration{"of a forced deletion": 0, "of a grace period": 5 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "f")
			w.now = noon.Add(90 * time.Second)
			w.delete(nil)
			object := w.etcd.read(t)
			text := deadline.Window{Start: noon, End: noon.Add(end)}.String()
			object.SetAnnotations(map[string]string{deadline.Annotation: text})
			if err := w.etcd.write(object); err != nil {
				t.Fatal(err)
			}
			w.now = noon.Add(10 * time.Second)
			for _, request := range []func(){func() { w.delete(nil) }, func() { w.delete(ptr.To[int64](60)) }, func() {
				if _, err := w.update(t.Context(), w.markAsDeleting); err != nil {
					t.Fatal(err)
				}
			}} {
				request()
				got := w.etcd.read(t)
				if kind := deadline.Of(got).Kind(); kind != deadline.Unspecified || got.GetAnnotations()[deadline.Annotation] != text {
					t.Errorf("%v: in etcd %s", kind, w.etcd.data)
				}
			}
		})
	}
}
