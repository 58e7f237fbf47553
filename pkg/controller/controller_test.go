package controller_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

func volume(name, version string) *v1.PersistentVolume {
	return &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-1", ResourceVersion: version}}
}

func TestKeyIsReconciledByOneWorkerAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var busy, done atomic.Int32
		loop := controller.NewLoop("test", controller.Backoff{Initial: time.Millisecond, Max: time.Second},
			func(context.Context, string) error {
				if busy.Add(1) > 1 {
					t.Error("two workers on one key")
				}
				<-time.After(time.Second)
				busy.Add(-1)
				done.Add(1)
				return nil
			})
		run(t, loop, 4)
		for range 3 {
			loop.Enqueue("key")
			<-time.After(400 * time.Millisecond)
		}
		<-time.After(10 * time.Second)
		if got := done.Load(); got != 2 {
			t.Errorf("reconciled %d times, want twice: keys enqueued during a reconcile count once", got)
		}
	})
}

func TestFailedKeyBacksOffAndPanicStopsNoWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var tries []time.Duration
		start := time.Now()
		loop := controller.NewLoop("test", controller.Backoff{Initial: time.Second, Max: 4 * time.Second},
			func(_ context.Context, key string) error {
				if key == "bad" {
					panic("unexpected object")
				}
				mu.Lock()
				defer mu.Unlock()
				tries = append(tries, time.Since(start))
				if len(tries) < 5 {
					return errors.New("not yet")
				}
				return nil
			})
		run(t, loop, 1)
		loop.Enqueue("bad")
		loop.Enqueue("key")
		<-time.After(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		want := []time.Duration{0, 1 * time.Second, 3 * time.Second, 7 * time.Second, 11 * time.Second}
		if len(tries) != len(want) {
			t.Fatalf("tried at %v, want at %v", tries, want)
		}
		for i := range want {
			if tries[i] != want[i] {
				t.Errorf("try %d at %v, want at %v", i, tries[i], want[i])
			}
		}
	})
}

// Each reconcile writes, and the event of its own write enqueues the key at once.
func TestUnsettledKeyBacksOffDespiteEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var tries []time.Duration
		start := time.Now()
		var loop *controller.Loop
		loop = controller.NewLoop("test", controller.Backoff{Initial: time.Second, Max: 4 * time.Second},
			func(context.Context, string) error {
				mu.Lock()
				defer mu.Unlock()
				if tries = append(tries, time.Since(start)); len(tries) >= 5 {
					return nil
				}
				loop.Enqueue("key")
				return controller.ErrTooManySteps
			})
		run(t, loop, 2)
		for range 40 { // until 10 seconds have passed
			loop.Enqueue("key")
			<-time.After(time.Second / 4)
		}
		<-time.After(time.Minute)
		loop.Enqueue("key")
		<-time.After(time.Second)
		mu.Lock()
		defer mu.Unlock()
		want := []time.Duration{0, 1 * time.Second, 3 * time.Second, 7 * time.Second, 11 * time.Second, 70 * time.Second}
		if !slices.Equal(tries, want) {
			t.Fatalf("tried at %v, want at %v: the last, after success, at once", tries, want)
		}
	})
}

func TestStoppedLoopFinishesOnlyItsCurrentObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var finished, aborted atomic.Int32
		loop := controller.NewLoop("test", controller.Backoff{Initial: time.Millisecond, Max: time.Second},
			func(ctx context.Context, key string) error {
				duration := map[string]time.Duration{"short": 2 * time.Second, "long": time.Minute}[key]
				select {
				case <-time.After(duration):
					finished.Add(1)
				case <-ctx.Done():
					aborted.Add(1)
				}
				return nil
			})
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		start, stopped := time.Now(), make(chan struct{})
		go func() {
			loop.Run(ctx, 2)
			close(stopped)
		}()
		synctest.Wait() // keys enqueued before Run are reconciled in any order
		for _, key := range []string{"short", "long", "short-later"} {
			loop.Enqueue(key)
		}
		<-stopped
		if finished.Load() != 1 || aborted.Load() != 1 {
			t.Errorf("%d finished and %d aborted, want one each", finished.Load(), aborted.Load())
		}
		if took := time.Since(start); took != 4*time.Second {
			t.Errorf("stopped after %s, want one second until the stop and three of grace period", took)
		}
	})
}

// run runs the loop until the test ends.
func run(t *testing.T, loop *controller.Loop, workers int) {
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { loop.Run(ctx, workers) })
	t.Cleanup(func() { stop(); running.Wait() })
}

func TestCacheOlderThanOwnWriteIsNotFresh(t *testing.T) {
	versions := controller.NewVersions()
	if !versions.IsFresh(volume("v", "5")) {
		t.Error("an object without own write is not fresh")
	}
	versions.RecordWrite(volume("v", "10"))
	versions.RecordWrite(volume("v", "8")) // the answer of an older write may come later
	if versions.IsFresh(volume("v", "9")) {
		t.Error("a cache at 9 is fresh after a write of 10")
	}
	if !versions.IsFresh(volume("v", "10")) || !versions.IsFresh(volume("v", "11")) {
		t.Error("a cache with the own write is not fresh")
	}
	if !versions.IsFresh(volume("v", "5")) {
		t.Error("after a restore of the server's data, the object waits for a write that was seen")
	}
	versions.RecordWrite(volume("v", "20"))
	versions.Forget("uid-1")
	if !versions.IsFresh(volume("v", "9")) {
		t.Error("a forgotten object still counts")
	}
}

func TestRepeatedEventIsSentOnce(t *testing.T) {
	recorder := record.NewFakeRecorder(10)
	reporter := controller.NewReporter(recorder)
	waiting, failing := controller.NormalEvent("Waiting", "for someone"), controller.WarningEvent("Failing", "no luck")
	for _, event := range []controller.Event{waiting, waiting, failing, failing, waiting} {
		reporter.Report(volume("v", "1"), event)
	}
	reporter.Forget("uid-1")
	reporter.Report(volume("v", "1"), waiting)
	reporter.ReportAlways(volume("v", "1"), waiting)
	if got := len(recorder.Events); got != 5 {
		t.Errorf("%d events, want 5: three changes, one after being forgotten, one by ReportAlways", got)
	}
}

// The API server drops an event after an hour, so a lasting state is reported again.
func TestRepeatedEventIsSentAgainEveryHalfHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder := record.NewFakeRecorder(100)
		reporter := controller.NewReporter(recorder)
		for range 121 { // reconciled every minute for two hours
			reporter.Report(volume("v", "1"), controller.NormalEvent("Waiting", "for someone"))
			<-time.After(time.Minute)
		}
		if got := len(recorder.Events); got != 5 {
			t.Errorf("%d events in two hours, want one every half hour", got)
		}
	})
}

// Retried after 1, 2, 4 ... seconds, and after five minutes in the end.
func TestRepeatedFailureIsReportedAtGrowingIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := &timedRecorder{start: time.Now()}
		reporter := controller.NewReporter(events)
		busy, gone := controller.WarningEvent("Busy", "no luck"), controller.WarningEvent("Gone", "no luck")
		for wait := time.Second; time.Since(events.start) < 30*time.Minute; wait = min(2*wait, 5*time.Minute) {
			reporter.ReportFailure(volume("v", "1"), busy)
			<-time.After(wait)
		}
		reporter.ReportFailure(volume("v", "1"), gone)
		reporter.ReportFailure(volume("v", "1"), busy)
		synctest.Wait()
		want := []string{"0s Busy", "31s Busy", "2m7s Busy", "4m15s Busy", "8m31s Busy", "13m31s Busy", "18m31s Busy",
			"23m31s Busy", "28m31s Busy", "33m31s Gone", "33m31s Busy"}
		if !slices.Equal(events.sent, want) {
			t.Errorf("events %v, want %v", events.sent, want)
		}
	})
}

// Each case does something one second after an event was delayed by two seconds.
func TestDelayedEvent(t *testing.T) {
	waiting, failing := controller.NormalEvent("Waiting", "for someone"), controller.WarningEvent("Failing", "no luck")
	for name, tc := range map[string]struct {
		meanwhile func(*controller.Reporter)
		want      []string // time and reason
	}{
		"is sent after the delay":            {func(*controller.Reporter) {}, []string{"2s Waiting"}},
		"keeps its time when it is repeated": {func(r *controller.Reporter) { r.ReportAfter(volume("v", "2"), waiting, time.Minute) }, []string{"2s Waiting"}},
		"is replaced":                        {func(r *controller.Reporter) { r.ReportAfter(volume("v", "1"), failing, 3*time.Second) }, []string{"4s Failing"}},
		"is replaced at once":                {func(r *controller.Reporter) { r.ReportAfter(volume("v", "1"), failing, 0) }, []string{"1s Failing"}},
		"stays beside another event":         {func(r *controller.Reporter) { r.Report(volume("v", "1"), failing) }, []string{"1s Failing", "2s Waiting"}},
		"is withdrawn":                       {func(r *controller.Reporter) { r.Withdraw("uid-1") }, nil},
		"is forgotten":                       {func(r *controller.Reporter) { r.Forget("uid-1") }, nil},
		"is delayed again once withdrawn": {func(r *controller.Reporter) {
			r.Withdraw("uid-1")
			r.ReportAfter(volume("v", "1"), waiting, 2*time.Second)
		}, []string{"3s Waiting"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				events := &timedRecorder{start: time.Now()}
				reporter := controller.NewReporter(events)
				reporter.ReportAfter(volume("v", "1"), waiting, 2*time.Second)
				<-time.After(time.Second)
				tc.meanwhile(reporter)
				<-time.After(time.Minute)
				synctest.Wait()
				if !slices.Equal(events.sent, tc.want) {
					t.Errorf("events %v, want %v", events.sent, tc.want)
				}
			})
		})
	}
}

func TestDelayedEventIsSentWhenDue(t *testing.T) {
	for name, tc := range map[string]struct {
		withdrawnAfter time.Duration
		want           []string
	}{
		"due after three waits": {time.Hour, []string{"6s Waiting"}},
		"withdrawn before":      {5 * time.Second, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				events := &timedRecorder{start: time.Now()}
				reporter := controller.NewReporter(events)
				reporter.ReportWhen(volume("v", "1"), controller.NormalEvent("Waiting", "for someone"),
					func(waited time.Duration) time.Duration {
						if waited >= 6*time.Second {
							return 0
						}
						return 2 * time.Second
					})
				<-time.After(tc.withdrawnAfter)
				reporter.Withdraw("uid-1")
				<-time.After(time.Hour)
				synctest.Wait()
				if !slices.Equal(events.sent, tc.want) {
					t.Errorf("events %v, want %v", events.sent, tc.want)
				}
			})
		})
	}
}

func TestDelayedEventIsSentOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := &timedRecorder{start: time.Now()}
		reporter := controller.NewReporter(events)
		for range 5 {
			reporter.ReportAfter(volume("v", "1"), controller.NormalEvent("Waiting", "for someone"), 2*time.Second)
			<-time.After(time.Minute)
		}
		synctest.Wait()
		if want := []string{"2s Waiting"}; !slices.Equal(events.sent, want) {
			t.Errorf("events %v, want %v", events.sent, want)
		}
	})
}

// The driver answers after the event about its call was sent, each time with the same failure.
func TestSlowFailureIsReportedAtGrowingIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := &timedRecorder{start: time.Now()}
		reporter := controller.NewReporter(events)
		for range 10 {
			reporter.ReportAfter(volume("v", "1"), controller.NormalEvent("Calling", "the driver"), 2*time.Second)
			<-time.After(3 * time.Second)
			reporter.Withdraw("uid-1")
			reporter.ReportFailure(volume("v", "1"), controller.WarningEvent("Failing", "too late"))
			<-time.After(time.Second)
		}
		reporter.Report(volume("v", "1"), controller.NormalEvent("Done", "at last"))
		reporter.ReportFailure(volume("v", "1"), controller.WarningEvent("Failing", "too late"))
		synctest.Wait()
		if want := []string{"2s Calling", "3s Failing", "6s Calling", "35s Failing", "40s Done",
			"40s Failing"}; !slices.Equal(events.sent, want) {
			t.Errorf("events %v, want %v", events.sent, want)
		}
	})
}

// timedRecorder records the times and reasons of events.
type timedRecorder struct {
	record.EventRecorder
	start time.Time

	mu   sync.Mutex
	sent []string
}

func (r *timedRecorder) Event(_ runtime.Object, _, reason, _ string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = append(r.sent, time.Since(r.start).String()+" "+reason)
}

func TestOnChangeTellsChangesFromDeletions(t *testing.T) {
	var changes, gone int
	handler := controller.OnChange(func(_, _ *v1.PersistentVolume) { changes++ }, func(*v1.PersistentVolume) { gone++ })
	handler.OnAdd(volume("v", "1"), false)
	handler.OnUpdate(volume("v", "1"), volume("v", "1")) // a resync
	handler.OnUpdate(volume("v", "1"), volume("v", "2"))
	handler.OnDelete(volume("v", "2"))
	again := volume("v", "3")
	again.UID = "uid-2"
	handler.OnUpdate(volume("v", "2"), again) // the watch missed the deletion
	handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "v", Obj: volume("v", "2")})
	if changes != 3 || gone != 3 {
		t.Errorf("%d changes and %d gone, want 3 and 3", changes, gone)
	}
}
