package nodeterminator

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/termination"
)

// A store that was away while the node drained must not cost the last report, nor delay it for hours.
func TestLastReportIsWrittenAfterLongOutage(t *testing.T) {
	for _, minutes := range []int{2, 4} {
		synctest.Test(t, func(t *testing.T) {
			client := fake.NewClientset()
			var back atomic.Bool
			client.PrependReactor("*", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
				return !back.Load(), nil, errors.New("connection refused")
			})
			r := newReports(client, "exeunt-system", isThere)
			for i := range minutes * 60 / 5 {
				r.offer(reportOf(termination.PhaseDraining, i))
				<-time.After(5 * time.Second)
			}
			r.finish(reportOf(termination.PhaseEnded, 1000))
			synctest.Wait()
			back.Store(true)
			<-time.After(30 * time.Minute)
			synctest.Wait()
			if got := stored(t, client); got.Phase != termination.PhaseEnded {
				t.Errorf("half an hour after an outage of %d minutes the report is %+v", minutes, got)
			}
		})
	}
}

// A released Node that finalizers of others keep brings no later change.
func TestChangeDuringWriteIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		client.PrependReactor("create", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			<-time.After(time.Second)
			return false, nil, nil
		})
		r := newReports(client, "exeunt-system", isThere)
		r.offer(reportOf(termination.PhaseDraining, 1))
		<-time.After(500 * time.Millisecond)
		r.offer(reportOf(termination.PhaseEnded, 2))
		<-time.After(time.Minute)
		synctest.Wait()
		if got := stored(t, client); got.Phase != termination.PhaseEnded {
			t.Errorf("a minute later the report is %+v", got)
		}
	})
}

// The node ends while a write is in flight.
func TestEndDuringWriteIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, first := range map[string]func(*reports, termination.Report){"a report": (*reports).offer,
			"the last report of a list": (*reports).finish} {
			client := fake.NewClientset()
			r := newReports(client, "exeunt-system", isThere)
			client.PrependReactor("create", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
				r.finish(reportOf(termination.PhaseEnded, 2))
				return false, nil, nil
			})
			first(r, reportOf(termination.PhaseStopping, 1))
			synctest.Wait()
			if got := stored(t, client); got.Phase != termination.PhaseEnded || len(r.pending) > 0 {
				t.Errorf("after %s the report is %+v, %d are pending", name, got, len(r.pending))
			}
		}
	})
}

// A rolling update stops the leader while a write is in flight, and its node has changed, or ended, since that began.
func TestLeaderThatStopsWritesWhatChangedDuringWrite(t *testing.T) {
	for phase, change := range map[termination.Phase]func(*reports, termination.Report){
		termination.PhaseDraining: (*reports).offer, termination.PhaseEnded: (*reports).finish} {
		synctest.Test(t, func(t *testing.T) {
			client := fake.NewClientset()
			client.PrependReactor("patch", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
				<-time.After(400 * time.Millisecond)
				return false, nil, nil
			})
			r := newReports(client, "exeunt-system", isThere)
			stop := r.start(t.Context())
			r.offer(reportOf(termination.PhaseDraining, 1))
			<-time.After(time.Minute)
			r.offer(reportOf(termination.PhaseDraining, 2))
			<-time.After(200 * time.Millisecond)
			change(r, reportOf(phase, 3))
			stop()
			if got := stored(t, client); got.Phase != phase || got.Counts.Evicted != 3 {
				t.Errorf("%s: %+v", phase, got)
			}
		})
	}
}

// A rolling update stops the leader. The next one counts on from what is stored: a pod that ended meanwhile it never saw.
func TestLeaderThatStopsWritesItsReports(t *testing.T) {
	for name, later := range map[string]time.Duration{"the write is planned": 0, "the write is in flight": 4200 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			client, patched := fake.NewClientset(), atomic.Int64{}
			client.PrependReactor("patch", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
				<-time.After(500 * time.Millisecond)
				patched.Add(1)
				return false, nil, nil
			})
			r := newReports(client, "exeunt-system", isThere)
			stop := r.start(t.Context())
			r.offer(reportOf(termination.PhaseDraining, 1))
			<-time.After(time.Second)
			r.offer(reportOf(termination.PhaseDraining, 2))
			<-time.After(later) // the write begins 5 s after the first one
			stop()
			if got := patched.Load(); got != 1 {
				t.Errorf("%s: %d writes after the first one", name, got)
			}
		})
	}
}
