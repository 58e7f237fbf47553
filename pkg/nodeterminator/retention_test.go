package nodeterminator

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/termination"
)

// configMapOf returns the report as an earlier process stored it, so long ago.
func configMapOf(t *testing.T, report termination.Report, age time.Duration) *v1.ConfigMap {
	t.Helper()
	text, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	return &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "node-termination-" + report.UID, Namespace: "exeunt-system",
		Labels:            map[string]string{termination.ReportLabel: report.Node},
		CreationTimestamp: metav1.Time{Time: time.Now().Add(-age)}}, Data: map[string]string{termination.ReportKey: string(text)}}
}

func isGone(termination.Report) bool { return false }

func TestReportIsDeletedAtItsAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := configMapOf(t, reportOf(termination.PhaseEnded, 1), 71*time.Hour)
		other := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: "exeunt-system"}}
		client := fake.NewClientset(old, other)
		r := newReports(client, "exeunt-system", isGone)
		stop := r.start(t.Context())
		names := func() string {
			list, err := client.CoreV1().ConfigMaps("exeunt-system").List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			text := ""
			for _, one := range list.Items {
				text += one.Name + " "
			}
			return text
		}
		<-time.After(59 * time.Minute)
		if got := names(); got != "node-termination-u other " {
			t.Errorf("after 71 h 59 m: %s", got)
		}
		<-time.After(2 * time.Minute)
		if got := names(); got != "other " {
			t.Errorf("after 72 h: %s", got)
		}
		stop()
	})
}

// #70 A node waits for a week for its power off, and node-terminator is upgraded meanwhile.
func TestReportOfLongTerminationOutlivesNewLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(configMapOf(t, reportOf(termination.PhaseDraining, 25), 100*time.Hour))
		r := newReports(client, "exeunt-system", isThere)
		stop := r.start(t.Context())
		for range 2 {
			<-time.After(time.Second)
			if got := stored(t, client); got.Counts.Evicted != 25 {
				t.Errorf("the report of a running termination is deleted: %+v", got)
			}
			<-time.After(2 * reportAge)
		}
		stop()
	})
}

// The termination of one node lasts for 80 h. Its report can be read for 72 h, whoever leads then.
func TestReportIsKeptAfterLastChange(t *testing.T) {
	for name, restarts := range map[string]bool{"one leader": false, "a new leader": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, there := fake.NewClientset(), true
				exists := func(termination.Report) bool { return there }
				r := newReports(client, "exeunt-system", exists)
				stop := r.start(t.Context())
				r.offer(reportOf(termination.PhaseDraining, 1))
				<-time.After(80*time.Hour + 30*time.Minute) // the fake client ignores the version of a deletion, tried each hour
				there = false
				r.finish(reportOf(termination.PhaseEnded, 1))
				<-time.After(time.Hour)
				if restarts {
					stop()
					r = newReports(client, "exeunt-system", exists)
					stop = r.start(t.Context())
				}
				<-time.After(70 * time.Hour)
				if got := stored(t, client); got.Phase != termination.PhaseEnded {
					t.Errorf("after 71 h: %+v", got)
				}
				<-time.After(2 * time.Hour)
				if got := stored(t, client); got.Phase != "" {
					t.Errorf("after 73 h: %+v", got)
				}
				stop()
			})
		})
	}
}

func TestNodeThatWentUnseenIsWrittenDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		report := reportOf(termination.PhaseStopping, 3)
		report.Counts.Left, report.Left = 1, []termination.Left{{Pod: "ns/a"}}
		client := fake.NewClientset(configMapOf(t, report, 0))
		r := newReports(client, "exeunt-system", isGone)
		stop := r.start(t.Context())
		synctest.Wait()
		if got := stored(t, client); got.Phase != termination.PhaseEnded || got.Counts.Unknown != 1 || got.Counts.Evicted != 3 {
			t.Errorf("%+v", got)
		}
		stop()
	})
}

// #70 The store is away when a leader starts: the report of a node that went while nobody led is finished later.
func TestReportsAreListedAgainAfterFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(configMapOf(t, reportOf(termination.PhaseStopping, 3), 0))
		back := time.Now().Add(time.Minute)
		client.PrependReactor("list", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			return time.Now().Before(back), nil, errors.New("connection refused")
		})
		ctx, cancel := context.WithCancel(t.Context())
		r := newReports(client, "exeunt-system", isGone)
		stop := r.start(ctx)
		<-time.After(10 * time.Minute)
		if got := stored(t, client); got.Phase != termination.PhaseEnded {
			t.Errorf("the report is not finished: %+v", got)
		}
		cancel()
		stop()
	})
}

// #70 The store is away when a leader starts, and comes back after this leader has evicted the last pod of a node.
func TestNodeThatEndsBeforeListIsCountedOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		earlier := termination.Report{Node: "a", UID: "uid-a", Phase: termination.PhaseDraining,
			Counts: termination.Counts{Evicted: 7, Left: 1}, Left: []termination.Left{{Pod: "ns/p", UID: "p"}}}
		n := withFirstAction(deletedNode("a", "30m", time.Now()), time.Now())
		if err := errors.Join(w.client.Tracker().Add(configMapOf(w.t, earlier, 0)), w.client.Tracker().Add(n)); err != nil {
			w.t.Fatal(err)
		}
		back := w.withoutReports()
		stop := w.reports.start(w.ctx)
		<-time.After(100 * time.Millisecond)
		w.pods.result.Counts.Evicted = 1
		w.begun(n)
		<-time.After(readTimeout)
		w.endWithoutReports(n, back)
		if got := storedOf(w); got.Phase != termination.PhaseEnded || got.Counts.Evicted != 8 || got.Counts.Unknown != 0 {
			w.t.Errorf("%+v", got)
		}
		stop()
	})
}

// slowList answers a list five seconds after it was read.
type slowList struct{ corev1.ConfigMapInterface }

func (s slowList) List(ctx context.Context, options metav1.ListOptions) (*v1.ConfigMapList, error) {
	list, err := s.ConfigMapInterface.List(ctx, options)
	<-time.After(5 * time.Second)
	return list, err
}

// #70 The node ends, and its last report is written, while the answer to the list is on its way.
func TestOldListEndsNoReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		earlier := reportOf(termination.PhaseDraining, 3)
		earlier.Counts.Left, earlier.Left = 1, []termination.Left{{Pod: "ns/a"}}
		client := fake.NewClientset(configMapOf(t, earlier, 0))
		r := newReports(client, "exeunt-system", isGone)
		r.client = slowList{r.client}
		stop := r.start(t.Context())
		<-time.After(time.Second)
		r.finish(reportOf(termination.PhaseEnded, 4))
		<-time.After(time.Minute)
		if got := stored(t, client); got.Counts != (termination.Counts{Evicted: 4}) {
			t.Errorf("%+v", got)
		}
		stop()
	})
}

// A node that ends before its first report leaves nothing behind.
func TestNodeWithoutReportIsForgotten(t *testing.T) {
	inWorld(t, func(w *world) {
		w.conclude(w.begun(deletedNode("a", "30m", time.Now())))
		<-time.After(time.Minute)
		if got := writes(w.client); got > 0 || len(w.reports.pending) > 0 {
			w.t.Errorf("%d writes, %d reports are pending", got, len(w.reports.pending))
		}
	})
}

// A webhook denies a DELETE, or the API server is away: the report is deleted later.
func TestOldReportIsDeletedAgainAfterFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(configMapOf(t, reportOf(termination.PhaseEnded, 1), 0))
		denied := 0
		client.PrependReactor("delete", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			denied++
			return denied <= 3, nil, apierrors.NewForbidden(v1.Resource("configmaps"), "n", errors.New("a webhook denies"))
		})
		r := newReports(client, "exeunt-system", isGone)
		stop := r.start(t.Context())
		<-time.After(reportAge + 12*time.Hour)
		if _, err := client.CoreV1().ConfigMaps("exeunt-system").Get(t.Context(), "node-termination-u",
			metav1.GetOptions{}); !apierrors.IsNotFound(err) || denied != 4 {
			t.Errorf("the report is left after %d deletions: %v", denied, err)
		}
		stop()
	})
}
