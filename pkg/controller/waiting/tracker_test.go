package waiting

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
)

// fixture is a running tracker.
type fixture struct {
	*Tracker
	recorder *record.FakeRecorder
	refuses  bool
}

// inBubble runs the test with a running tracker and a clock that the test advances.
func inBubble(t *testing.T, test func(t *testing.T, f *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &fixture{Tracker: New(clock.RealClock{}, blocker.ClaimExists), recorder: record.NewFakeRecorder(100)}
		f.SendTo(f.recorder, func(string) bool { return f.refuses })
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			f.Run(ctx)
		}()
		test(t, f)
		cancel()
		<-ended
	})
}

func (f *fixture) pass(duration time.Duration) {
	<-time.After(duration)
	synctest.Wait()
}

// events returns the events that were sent since the last call.
func (f *fixture) events() []string {
	var all []string
	for {
		select {
		case event := <-f.recorder.Events:
			all = append(all, event)
		default:
			return all
		}
	}
}

func (f *fixture) expectEvents(t *testing.T, when string, count int) {
	t.Helper()
	if got := f.events(); len(got) != count {
		t.Errorf("%s: %d events, want %d: %v", when, len(got), count, got)
	}
}

// deletion returns a deletion of the object that waits for a claim.
func deletion(uid types.UID) Deletion {
	return Deletion{
		Object:    v1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "data", UID: uid},
		Finalizer: finalizer.VolumeProtection,
		Since:     time.Now().Add(-time.Hour), Reason: blocker.ClaimExists,
		Blocker: func() (blocker.Blocker, bool) {
			return blocker.Blocker{Reason: blocker.ClaimExists, Holder: "the claim", Next: "delete it"}, true
		},
	}
}

func TestEventFollowsDelayOncePerInterval(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		f.Wait(deletion("a"))
		f.pass(29 * time.Second)
		f.expectEvents(t, "after 29 s", 0)
		f.pass(2 * time.Second)
		events := f.events()
		if want := "Normal DeletionWaiting ClaimExists: "; len(events) != 1 || !strings.HasPrefix(events[0], want) {
			t.Errorf("events after 31 s: %v, want one that begins with %q", events, want)
		}
		for range 28 { // every change is a new call
			f.Wait(deletion("a"))
			f.pass(time.Minute)
		}
		f.expectEvents(t, "after 29 min", 0)
		f.pass(2 * time.Minute)
		f.expectEvents(t, "after 31 min", 1)
	})
}

func TestQuickDeletionsHaveNoEvent(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		for i := range 5000 {
			f.Wait(deletion(types.UID(fmt.Sprint(i))))
		}
		f.pass(20 * time.Second)
		for i := range 5000 {
			f.Forget(types.UID(fmt.Sprint(i)))
		}
		f.pass(time.Hour)
		f.expectEvents(t, "after an hour", 0)
		if len(f.tracked) != 0 || f.queue.Len() != 0 {
			t.Errorf("the tracker still has %d deletions, its queue %d", len(f.tracked), f.queue.Len())
		}
	})
}

// slowSink is an API server that takes some time for each event.
type slowSink struct {
	record.EventSink
	created int
}

func (s *slowSink) Create(event *v1.Event) (*v1.Event, error) {
	<-time.After(10 * time.Millisecond)
	s.created++
	return event, nil
}

// The recorder drops events that the API server does not take soon enough, those of other
// senders too.
func TestManyEventsAreAllSent(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		sink, broadcaster := &slowSink{}, record.NewBroadcaster()
		broadcaster.StartRecordingToSink(sink)
		f.SendTo(broadcaster.NewRecorder(scheme.Scheme, v1.EventSource{Component: "test"}),
			func(string) bool { return false })
		for i := range 5000 {
			many := deletion(types.UID(fmt.Sprint(i)))
			many.Object.Name = fmt.Sprint("data-", i)
			f.Wait(many)
		}
		f.pass(10 * time.Minute)
		broadcaster.Shutdown()
		synctest.Wait()
		if sink.created != 5000 {
			t.Errorf("the API server got %d events, want 5000", sink.created)
		}
	})
}

// A driver may answer after somebody removed the finalizers by force.
func TestWaitOfVanishedObjectIsNotTracked(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		exists := true
		late := deletion("a")
		late.Exists = func() bool { return exists }
		f.Wait(late)
		exists = false
		f.Forget("a") // by the event of the informer
		f.Wait(late)  // by the reconciler that was busy meanwhile
		f.pass(time.Hour)
		f.expectEvents(t, "after an hour", 0)
		if got := f.count()[blocker.ClaimExists].deletions; got != 0 || len(f.tracked) != 0 {
			t.Errorf("%d deletions of vanished objects wait, %d are tracked", got, len(f.tracked))
		}
	})
}

func TestMoreExactEventReplacesEvent(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		reported := deletion("a")
		reported.Reported = true
		f.Wait(reported)
		f.pass(59 * time.Minute)
		f.expectEvents(t, "after 59 min", 0)
		f.pass(2 * time.Minute)
		f.expectEvents(t, "once the API server has dropped the other event", 1)
	})
}

func TestTerminatingNamespaceHasMetricOnly(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		f.refuses = true
		f.Wait(deletion("a"))
		f.pass(24 * time.Hour)
		f.expectEvents(t, "after a day", 0)
		if got := f.count()[blocker.ClaimExists]; got.deletions != 1 || got.oldest != 25*time.Hour {
			t.Errorf("the metric counts %+v, want one deletion of 25 h", got)
		}
	})
}

func TestWaitForThisProgramHasNoEvent(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		var waits atomic.Bool
		busy := deletion("a")
		known := busy.Blocker
		busy.Blocker = func() (blocker.Blocker, bool) { b, _ := known(); return b, waits.Load() }
		f.Wait(busy)
		f.pass(10 * time.Minute)
		f.expectEvents(t, "while the program works", 0)
		waits.Store(true)
		f.pass(time.Minute)
		f.expectEvents(t, "once another object blocks", 1)
	})
}

func TestClearedWaitKeepsInterval(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		f.Wait(deletion("a"))
		f.pass(time.Minute)
		f.expectEvents(t, "after a minute", 1)
		f.Clear("a", finalizer.External)
		if got := f.count()[blocker.ClaimExists].deletions; got != 1 {
			t.Errorf("another finalizer cleared the wait: %d deletions wait", got)
		}
		f.Clear("a", finalizer.VolumeProtection)
		if got := f.count()[blocker.ClaimExists].deletions; got != 0 {
			t.Errorf("%d deletions wait after Clear", got)
		}
		f.Wait(deletion("a"))
		f.pass(10 * time.Minute)
		f.expectEvents(t, "when it waits again", 0)
		f.pass(30 * time.Minute)
		f.expectEvents(t, "after the interval", 1)
	})
}

func TestEventOfStuckDeletionIsNoWarning(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		stuck := deletion("a")
		stuck.Blocker = func() (blocker.Blocker, bool) {
			return blocker.Blocker{Reason: blocker.DriverMissing, Verdict: blocker.Stuck}, true
		}
		f.Wait(stuck)
		f.pass(time.Minute)
		if events := f.events(); len(events) != 1 || !strings.HasPrefix(events[0], "Normal DeletionWaiting DriverMissing: ") {
			t.Errorf("events %v", events)
		}
		if got := f.count(); got[blocker.DriverMissing].deletions != 1 || got[blocker.ClaimExists].deletions != 0 {
			t.Errorf("the metric does not follow the blocker: %v", got)
		}
	})
}

func TestMetricsExistWithoutDeletions(t *testing.T) {
	counts := New(clock.RealClock{}, blocker.ClaimExists, blocker.PodUsesClaim).count()
	var reasons []blocker.Reason
	for reason := range counts {
		reasons = append(reasons, reason)
	}
	slices.Sort(reasons)
	if !slices.Equal(reasons, []blocker.Reason{blocker.ClaimExists, blocker.PodUsesClaim}) {
		t.Errorf("metrics of %v", reasons)
	}
}

func TestNilTrackerTracksNothing(t *testing.T) {
	var none *Tracker
	none.Wait(deletion("a"))
	none.Clear("a", finalizer.VolumeProtection)
	none.Forget("a")
	none.Run(t.Context())
}
