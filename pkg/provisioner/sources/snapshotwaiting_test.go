package sources_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/controller/waiting"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/provisioner/sources"
	"github.com/exeunt-io/exeunt/test/controllertest"
)

func TestSweepTracksSnapshotThatIsRestored(t *testing.T) {
	const want = "Normal DeletionWaiting SnapshotRunning: "
	for name, tc := range map[string]struct {
		deleted, served, gone, unserved bool
		events                          int
	}{
		"claim is served here":         {deleted: true, served: true, events: 1},
		"claim of another driver":      {deleted: true},
		"snapshot is not deleted":      {served: true},
		"snapshot is gone a bit later": {deleted: true, served: true, gone: true},
		"resource is gone a bit later": {deleted: true, served: true, unserved: true},
	} {
		t.Run(name, func(t *testing.T) {
			protected := snapshot("snap", string(finalizer.SnapshotSource))
			if tc.deleted {
				protected.DeletionTimestamp = &metav1.Time{}
			}
			w := newWorld(t, 0, protected)
			events := controllertest.EventsAfter(t, func(t *testing.T, tracker *waiting.Tracker) {
				w.Waiting, w.Serves = tracker, func(*v1.PersistentVolumeClaim) bool { return tc.served }
				if err := w.claims.GetStore().Add(from("snap", v1.ClaimPending)); err != nil {
					t.Fatal(err)
				}
				if err := w.Sweep(t.Context()); err != nil {
					t.Fatal(err)
				}
				vanish(t, w, tc.gone, tc.unserved)
				if err := w.Sweep(t.Context()); err != nil {
					t.Fatal(err)
				}
			})
			if len(events) != tc.events || tc.events > 0 && (!strings.HasPrefix(events[0], want) ||
				!strings.Contains(events[0], "PersistentVolumeClaim ns/claim-of-snap")) {
				t.Errorf("events %q, want %d that begin with %q", events, tc.events, want)
			}
		})
	}
}

// The deletion timestamp of a custom resource in its grace period is ahead.
func TestSnapshotInGraceWaitsSinceItsRequest(t *testing.T) {
	begin := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // of a bubble of package synctest
	protected := snapshot("snap", string(finalizer.SnapshotSource))
	protected.DeletionTimestamp = &metav1.Time{Time: begin.Add(4 * time.Minute)}
	protected.DeletionGracePeriodSeconds = ptr.To[int64](300)
	w := newWorld(t, 0, protected)
	controllertest.EventsAfter(t, func(t *testing.T, tracker *waiting.Tracker) {
		w.Waiting, w.Serves = tracker, func(*v1.PersistentVolumeClaim) bool { return true }
		if err := w.claims.GetStore().Add(from("snap", v1.ClaimPending)); err != nil {
			t.Fatal(err)
		}
		if err := w.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-time.After(30 * time.Second)
		const want = `# HELP exeunt_deletion_waiting_oldest_seconds Age of the oldest deletion that waits, in seconds, by the reason; 0 if none waits.
# TYPE exeunt_deletion_waiting_oldest_seconds gauge
exeunt_deletion_waiting_oldest_seconds{blocker="SnapshotRunning"} 90
`
		if err := testutil.CollectAndCompare(tracker, strings.NewReader(want), "exeunt_deletion_waiting_oldest_seconds"); err != nil {
			t.Error(err)
		}
	})
}

// A sweep that fails at its second page has tracked the snapshots of its first one.
func TestSnapshotOfFailedSweepIsForgotten(t *testing.T) {
	failures := map[string]error{
		"expired":  apierrors.NewResourceExpired("the list is too old"),
		"broken":   apierrors.NewInternalError(errors.New("no answer")),
		"unserved": apierrors.NewNotFound(sources.SnapshotResource.GroupResource(), ""),
		"refused":  apierrors.NewForbidden(sources.SnapshotResource.GroupResource(), "", errors.New("no")),
	}
	for name, failure := range failures {
		t.Run(name, func(t *testing.T) {
			protected := snapshot("snap", string(finalizer.SnapshotSource))
			protected.DeletionTimestamp = &metav1.Time{}
			w, lists := newWorld(t, 0, protected), 0
			w.metadata.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
				switch lists++; lists {
				case 1:
					return true, &metav1.List{ListMeta: metav1.ListMeta{Continue: "more"},
						Items: []runtime.RawExtension{{Object: protected}}}, nil
				case 2:
					return true, nil, failure
				}
				return false, nil, nil
			})
			events := controllertest.EventsAfter(t, func(t *testing.T, tracker *waiting.Tracker) {
				w.Waiting, w.Serves = tracker, func(*v1.PersistentVolumeClaim) bool { return true }
				if err := w.claims.GetStore().Add(from("snap", v1.ClaimPending)); err != nil {
					t.Fatal(err)
				}
				if err := w.Sweep(t.Context()); err != nil && !apierrors.IsInternalError(err) {
					t.Fatal(err)
				}
				vanish(t, w, true, false)
				if err := w.Sweep(t.Context()); err != nil {
					t.Fatal(err)
				}
			})
			if len(events) > 0 || lists != 3 {
				t.Errorf("%d lists, events %q", lists, events)
			}
		})
	}
}

// vanish deletes the snapshot, or the whole resource.
func vanish(t *testing.T, w *world, gone, unserved bool) {
	t.Helper()
	if unserved {
		w.metadata.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewNotFound(sources.SnapshotResource.GroupResource(), "")
		})
	}
	if gone {
		if err := w.metadata.Tracker().Delete(sources.SnapshotResource, "ns", "snap"); err != nil {
			t.Fatal(err)
		}
	}
}
