package nodeterminator

import (
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/nodeterminator/drain"
	"github.com/exeunt-io/exeunt/pkg/termination"
)

// #70 The node ends before the report of an earlier leader could be read.
func TestEarlierReportIsNotOverwritten(t *testing.T) {
	for name, tc := range map[string]struct {
		after time.Duration
		own   termination.Counts
		want  termination.Counts
	}{
		"pods were counted beside it": {readTimeout, termination.Counts{Evicted: 2}, termination.Counts{Evicted: 9, CutShort: 1}},
		"pods were not seen":          {readTimeout, termination.Counts{}, termination.Counts{Evicted: 7, CutShort: 1}},
		"pods still waited for it":    {0, termination.Counts{}, termination.Counts{Evicted: 7, CutShort: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				storeEarlier(w)
				back := w.withoutReports()
				n := withFirstAction(deletedNode("a", "30m", time.Now()), time.Now())
				if err := w.client.Tracker().Add(n); err != nil {
					w.t.Fatal(err)
				}
				w.pods.result.Counts = tc.own
				w.begun(n)
				<-time.After(tc.after)
				w.endWithoutReports(n, back)
				synctest.Wait()
				got := storedOf(w)
				if got.Phase != termination.PhaseEnded || got.Counts != tc.want || len(got.CutShort) != 1 {
					w.t.Errorf("%+v", got)
				}
			})
		})
	}
}

// #70 The next leader ends a report that this one could not read.
func TestFormerLeaderKeepsUnreadReport(t *testing.T) {
	inWorld(t, func(w *world) {
		storeEarlier(w)
		w.client.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			return w.ctx.Err() == nil, nil, errors.New("the store is away")
		})
		n := withFirstAction(deletedNode("a", "30m", time.Now()), time.Now())
		if err := w.client.Tracker().Add(n); err != nil {
			w.t.Fatal(err)
		}
		w.pods.result.Counts.Evicted = 2
		one := w.begun(n)
		<-time.After(readTimeout)
		if err := errors.Join(w.Reconcile(w.t.Context(), "a"), w.Reconcile(w.t.Context(), "a")); err != nil {
			w.t.Error(err)
		}
		w.end()
		w.conclude(one)
		<-time.After(time.Minute)
		synctest.Wait()
		if got := storedOf(w); got.Phase != termination.PhaseDraining || got.Counts.Evicted != 7 {
			w.t.Errorf("%+v", got)
		}
	})
}

// storeEarlier stores the report of an earlier leader about Node a.
func storeEarlier(w *world) {
	w.t.Helper()
	earlier := termination.Report{Node: "a", UID: "uid-a", Phase: termination.PhaseDraining,
		Counts: termination.Counts{Evicted: 7, CutShort: 1}, CutShort: []termination.CutShort{{Pod: "ns/p", UID: "p", Missing: 9}}}
	text, err := json.Marshal(earlier)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.client.Tracker().Add(&v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "exeunt-system",
		Name: reportName("uid-a"), CreationTimestamp: metav1.Now()},
		Data: map[string]string{termination.ReportKey: string(text)}}); err != nil {
		w.t.Fatal(err)
	}
}

// storedOf returns the report about Node a.
func storedOf(w *world) (report termination.Report) {
	w.t.Helper()
	list, err := w.client.CoreV1().ConfigMaps("exeunt-system").List(w.t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		w.t.Fatalf("%v, %d reports", err, len(list.Items))
	}
	if err := json.Unmarshal([]byte(list.Items[0].Data[termination.ReportKey]), &report); err != nil {
		w.t.Fatal(err)
	}
	return report
}

// #70 The earlier leader deleted pods and was killed before its first report: their conditions say what it did.
func TestPodsOfLeaderWithoutReportAreCounted(t *testing.T) {
	inWorld(t, func(w *world) {
		one := w.begun(withFirstAction(deletedNode("a", "30m", time.Now()), time.Now()))
		if !one.restored() || w.pods.restored != 1 {
			w.t.Errorf("what an earlier leader did was restored %d times", w.pods.restored)
		}
	})
}

// #70 The report could not be read before the node was released, and a finalizer of others keeps the Node.
func TestReleasedNodeGetsItsReport(t *testing.T) {
	inWorld(t, func(w *world) {
		storeEarlier(w)
		back := w.withoutReports()
		n := withFirstAction(deletedNode("a", "30m", time.Now()), time.Now())
		if err := w.client.Tracker().Add(n); err != nil {
			w.t.Fatal(err)
		}
		w.pods.result.Counts.Evicted = 2
		one := w.begun(n)
		<-time.After(readTimeout)
		if err := errors.Join(w.Reconcile(w.t.Context(), "a"), w.release(w.t.Context(), n, one)); err != nil {
			w.t.Error(err)
		}
		back.Store(true)
		<-time.After(time.Minute)
		if err := w.Reconcile(w.t.Context(), "a"); err != nil {
			w.t.Error(err)
		}
		<-time.After(time.Minute)
		if got := storedOf(w); got.Phase != termination.PhaseEnded || got.Counts.Evicted != 9 {
			w.t.Errorf("%+v", got)
		}
	})
}

// A pod is gone, and the answer to its last request comes after the node was released: the report names no pod as left.
func TestLastReportHasCountsOfRelease(t *testing.T) {
	inWorld(t, func(w *world) {
		n := withFirstAction(deletedNode("a", "30m", time.Now()), time.Now())
		if err := w.client.Tracker().Add(n); err != nil {
			w.t.Fatal(err)
		}
		w.pods.result.Counts.Left, w.pods.result.Left = 1, []termination.Left{{Pod: "shop/app", UID: "app"}}
		w.pods.last = drain.Result{Synced: true, Counts: termination.Counts{Unknown: 1}}
		one := w.begun(n)
		if err := errors.Join(w.Reconcile(w.t.Context(), "a"), w.release(w.t.Context(), n, one)); err != nil {
			w.t.Error(err)
		}
		<-time.After(time.Minute)
		if got := storedOf(w); got.Counts != (termination.Counts{Unknown: 1}) || len(got.Left) > 0 {
			w.t.Errorf("%+v", got)
		}
	})
}

// #70 The earlier leader released the node and was killed before it wrote so. A finalizer of others keeps the Node.
func TestReleasedNodeOfEarlierLeaderHasEnded(t *testing.T) {
	inWorld(t, func(w *world) {
		n := deletedNode("a", "30m", time.Now())
		w.cached(n)
		report := termination.Report{Node: "a", UID: "uid-a"}
		if !w.reports.exists(report) {
			w.t.Error("a node that is being terminated is said to have ended")
		}
		stale := n.DeepCopy()
		stale.DeletionTimestamp = nil
		w.cached(stale)
		if !w.reports.exists(report) {
			w.t.Error("a cache that lacks the deletion is taken for the end of the node")
		}
		released := n.DeepCopy()
		released.Finalizers = []string{"others.example/keep"}
		w.cached(released)
		if w.reports.exists(report) {
			w.t.Error("the report of a released node waits for others")
		}
	})
}

// withoutReports makes reads of reports fail until the value is set.
func (w *world) withoutReports() *atomic.Bool {
	back := &atomic.Bool{}
	for _, verb := range []string{"get", "list"} {
		w.client.PrependReactor(verb, "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			return !back.Load(), nil, errors.New("the store is away")
		})
	}
	return back
}

// endWithoutReports releases the node and removes it. Reports can be stored again a minute later.
func (w *world) endWithoutReports(n *v1.Node, back *atomic.Bool) {
	w.t.Helper()
	if err := errors.Join(w.Reconcile(w.t.Context(), "a"), w.Reconcile(w.t.Context(), "a")); err != nil {
		w.t.Error(err)
	}
	if err := w.caches.Nodes.GetStore().Delete(n); err != nil {
		w.t.Fatal(err)
	}
	if err := w.Reconcile(w.t.Context(), "a"); err != nil {
		w.t.Error(err)
	}
	<-time.After(time.Minute)
	back.Store(true)
	<-time.After(time.Minute)
}
