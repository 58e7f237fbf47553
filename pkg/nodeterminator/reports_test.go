package nodeterminator

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/termination"
)

// writes counts the writes of ConfigMaps.
func writes(client *fake.Clientset) int {
	count := 0
	for _, action := range client.Actions() {
		if action.GetVerb() == "create" || action.GetVerb() == "patch" {
			count++
		}
	}
	return count
}

// stored returns the report of node n, an empty one if there is none.
func stored(t *testing.T, client *fake.Clientset) termination.Report {
	t.Helper()
	var report termination.Report
	one, err := client.CoreV1().ConfigMaps("exeunt-system").Get(t.Context(), "node-termination-u", metav1.GetOptions{})
	if err != nil {
		return report
	}
	if err := json.Unmarshal([]byte(one.Data[termination.ReportKey]), &report); err != nil {
		t.Fatal(err)
	}
	return report
}

func isThere(termination.Report) bool { return true }

func reportOf(phase termination.Phase, evicted int) termination.Report {
	return termination.Report{Node: "n", UID: "u", Phase: phase, Counts: termination.Counts{Evicted: evicted}}
}

func TestReportIsReadAgainAfterFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(&v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "exeunt-system", Name: "node-termination-u",
			CreationTimestamp: metav1.Now()}, Data: map[string]string{termination.ReportKey: `{"counts":{"evicted":3}}`}})
		failures := 2
		client.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			failures--
			return failures >= 0, nil, errors.New("connection refused")
		})
		r := newReports(client, "exeunt-system", isThere)
		if report, err := r.read(t.Context(), "u"); err != nil || report.Counts.Evicted != 3 {
			t.Errorf("%+v, %v", report, err)
		}
		if report, err := r.read(t.Context(), "another"); report != nil || err != nil {
			t.Errorf("no report: %+v, %v", report, err)
		}
		failures = 20
		if report, err := r.read(t.Context(), "u"); err != nil || report.Counts.Evicted != 3 {
			t.Errorf("the store was away for a minute: %+v, %v", report, err)
		}
		failures = 1000
		ends, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if report, err := r.read(ends, "u"); report != nil || err == nil {
			t.Errorf("the termination has ended: %+v, %v", report, err)
		}
	})
}

// The counts of an earlier leader would be lost.
func TestProxyAnswerIsNoAbsentReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(&v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "exeunt-system",
			Name: "node-termination-u"}, Data: map[string]string{termination.ReportKey: `{"counts":{"evicted":3}}`}})
		failures := 2
		client.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			failures--
			return failures >= 0, nil, apierrors.NewGenericServerResponse(http.StatusNotFound, "get",
				v1.Resource("configmaps"), "node-termination-u", "404 page not found", 0, true)
		})
		r := newReports(client, "exeunt-system", isThere)
		if report, err := r.read(t.Context(), "u"); err != nil || report == nil || report.Counts.Evicted != 3 {
			t.Errorf("%+v, %v", report, err)
		}
	})
}

// A webhook denies each PATCH with 404.
func TestDeniedReportIsWrittenWithBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(&v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "exeunt-system",
			Name: "node-termination-u"}})
		patches := 0
		client.PrependReactor("patch", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			if patches++; patches > 100 {
				return true, nil, errors.New("too many writes")
			}
			return true, nil, apierrors.NewNotFound(v1.Resource("configmaps"), "node-termination-u")
		})
		r := newReports(client, "exeunt-system", isThere)
		r.offer(reportOf(termination.PhaseDraining, 1))
		<-time.After(time.Hour)
		if got := writes(client); got > 12 {
			t.Errorf("%d writes", got)
		}
	})
}

// Somebody deletes the report while the node waits.
func TestDeletedReportIsCreatedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		r := newReports(client, "exeunt-system", isThere)
		r.offer(reportOf(termination.PhaseDraining, 1))
		<-time.After(time.Minute)
		err := client.CoreV1().ConfigMaps("exeunt-system").Delete(t.Context(), "node-termination-u", metav1.DeleteOptions{})
		if err != nil {
			t.Fatal(err)
		}
		r.finish(reportOf(termination.PhaseEnded, 2))
		synctest.Wait()
		if got := stored(t, client); got.Phase != termination.PhaseEnded {
			t.Errorf("the report is %+v", got)
		}
	})
}

func TestReportIsWrittenOnceInFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		r := newReports(client, "exeunt-system", isThere)
		stop := r.start(t.Context())
		for i := range 100 {
			r.offer(reportOf(termination.PhaseDraining, i))
			<-time.After(100 * time.Millisecond)
		}
		if got := writes(client); got > 3 {
			t.Errorf("%d writes in 10 s", got)
		}
		r.finish(reportOf(termination.PhaseEnded, 100))
		synctest.Wait()
		if got := stored(t, client); got.Phase != termination.PhaseEnded || got.Counts.Evicted != 100 {
			t.Errorf("the last report is %+v", got)
		}
		before := writes(client)
		r.offer(reportOf(termination.PhaseEnded, 100))
		<-time.After(time.Minute)
		if got := writes(client) - before; got > 1 {
			t.Errorf("%d writes that change nothing", got)
		}
		stop()
	})
}

// #12 #70 A leader that follows knows by the report alone which budget a pod was deleted against.
func TestPodThatIsCutShortIsWrittenBeforeItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		r := newReports(client, "exeunt-system", isThere)
		report := reportOf(termination.PhaseDraining, 1)
		r.offer(report)
		<-time.After(time.Minute)
		report.CutShort = []termination.CutShort{{Pod: "shop/app", UID: "app", Reason: "BudgetBlocks", Budget: "web"}}
		r.offer(report)
		<-time.After(time.Minute)
		if got := stored(t, client); len(got.CutShort) != 1 || got.CutShort[0].Budget != "web" {
			t.Errorf("%+v", got)
		}
	})
}

func TestUnchangedReportIsNotWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		r := newReports(client, "exeunt-system", isThere)
		for range 100 {
			report := reportOf(termination.PhaseStopping, 1)
			report.OverdueSeconds = int64(time.Now().Second())
			r.offer(report)
			<-time.After(time.Second)
		}
		if got := writes(client); got != 1 {
			t.Errorf("%d writes", got)
		}
	})
}

func TestRefusedReportHoldsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		client.PrependReactor("create", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(v1.Resource("configmaps"), "report", errors.New("the namespace ends"))
		})
		r := newReports(client, "exeunt-system", isThere)
		stop := r.start(t.Context())
		began := time.Now()
		r.offer(reportOf(termination.PhaseDraining, 1))
		r.finish(reportOf(termination.PhaseEnded, 1))
		stop()
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it took %v", took)
		}
		<-time.After(time.Hour)
		if got := writes(client); got > 12 {
			t.Errorf("%d writes", got)
		}
	})
}

// The last report of a node has no later change that would write it again.
func TestLastReportIsWrittenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		failures := 3
		client.PrependReactor("patch", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			failures--
			return failures >= 0, nil, errors.New("connection refused")
		})
		r := newReports(client, "exeunt-system", isThere)
		stop := r.start(t.Context())
		defer stop()
		r.offer(reportOf(termination.PhaseDraining, 1))
		<-time.After(time.Minute)
		r.finish(reportOf(termination.PhaseEnded, 2))
		<-time.After(time.Minute)
		synctest.Wait()
		if got := stored(t, client); got.Phase != termination.PhaseEnded {
			t.Errorf("the last report is %+v", got)
		}
		if len(r.pending) > 0 || failures != -1 {
			t.Errorf("%d reports are pending, %d failures left", len(r.pending), failures)
		}
	})
}

// A node may wait for hours, and its report does not change meanwhile.
func TestLostReportIsWrittenAgain(t *testing.T) {
	for name, failure := range map[string]error{
		"store is away":     errors.New("connection refused"),
		"quota is exceeded": apierrors.NewForbidden(v1.Resource("configmaps"), "report", errors.New("exceeded quota")),
	} {
		for _, outage := range []time.Duration{time.Second, 2 * time.Minute, 100 * time.Hour} {
			synctest.Test(t, func(t *testing.T) {
				client, back := fake.NewClientset(), time.Now().Add(outage)
				client.PrependReactor("create", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
					return time.Now().Before(back), nil, failure
				})
				r := newReports(client, "exeunt-system", isThere)
				r.offer(reportOf(termination.PhaseDraining, 25))
				<-time.After(outage + min(2*outage, longestPause) + time.Minute)
				if got := stored(t, client); got.Counts.Evicted != 25 {
					t.Errorf("%s for %v: the report is %+v", name, outage, got)
				}
			})
		}
	}
}

// The store is away for hours while the node ends.
func TestLastReportOutlivesOutageOfStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, back := fake.NewClientset(), time.Now().Add(10*time.Hour)
		client.PrependReactor("create", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			return time.Now().Before(back), nil, errors.New("connection refused")
		})
		r := newReports(client, "exeunt-system", isThere)
		r.offer(reportOf(termination.PhaseDraining, 1))
		r.finish(reportOf(termination.PhaseEnded, 1))
		<-time.After(24 * time.Hour)
		if got := stored(t, client); got.Phase != termination.PhaseEnded {
			t.Errorf("the last report is lost: %+v", got)
		}
	})
}

// What is refused for ever is not written for ever.
func TestFailingReportIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		client.PrependReactor("create", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("a webhook is away")
		})
		r := newReports(client, "exeunt-system", isThere)
		r.offer(reportOf(termination.PhaseDraining, 1))
		r.finish(reportOf(termination.PhaseEnded, 1))
		<-time.After(2 * reportAge)
		synctest.Wait()
		if got := writes(client); got > lastTries+1 || len(r.pending) > 0 {
			t.Errorf("%d writes, %d reports are pending", got, len(r.pending))
		}
	})
}
