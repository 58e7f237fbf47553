package lease

import (
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"
)

// at returns the Lease of node n, renewed at this second of a clock that is a day off.
func at(second int, duration int32) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "n", Namespace: v1.NamespaceNodeLease},
		Spec: coordinationv1.LeaseSpec{LeaseDurationSeconds: ptr.To(duration),
			RenewTime: &metav1.MicroTime{Time: time.Date(2026, 1, 1, 0, 0, second, 0, time.UTC)}}}
}

// watched runs a test in virtual time with a watch of the Lease, if there is one.
func watched(t *testing.T, lease *coordinationv1.Lease, test func(t *testing.T, w *Watch, renew func(second int))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		leases := client.CoordinationV1().Leases(v1.NamespaceNodeLease)
		if lease != nil {
			if _, err := leases.Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		w := Start(t.Context(), client, "n", func() {})
		<-time.After(time.Second)
		test(t, w, func(second int) {
			if _, err := leases.Update(t.Context(), at(second, 40), metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		})
		w.Stop()
		synctest.Wait()
	})
}

func TestSilenceIsMeasuredByWatch(t *testing.T) {
	watched(t, at(0, 40), func(t *testing.T, w *Watch, renew func(int)) {
		if v := w.View(); !v.Synced || v.Renewals != 0 || v.Duration != 40*time.Second || v.Unchanged > time.Second {
			t.Errorf("at first: %+v", v)
		}
		<-time.After(10 * time.Second)
		renew(10)
		if v := w.View(); v.Renewals != 1 || v.Unchanged > time.Second || v.Returned != 0 {
			t.Errorf("renewed: %+v", v)
		}
		<-time.After(13 * time.Second)
		if v := w.View(); v.Unchanged < 13*time.Second || v.Silent() {
			t.Errorf("after 13 s: %+v", v)
		}
		<-time.After(28 * time.Second)
		if v := w.View(); !v.Silent() {
			t.Errorf("after 41 s: %+v", v)
		}
		renew(51)
		<-time.After(3 * time.Second)
		renew(54)
		if v := w.View(); v.Silent() || v.Returned != 3*time.Second {
			t.Errorf("3 s after the silence: %+v", v)
		}
	})
}

func TestOtherChangesAreNoRenewal(t *testing.T) {
	watched(t, at(0, 40), func(t *testing.T, w *Watch, renew func(int)) {
		<-time.After(10 * time.Second)
		renew(0)
		if v := w.View(); v.Renewals != 0 || v.Unchanged < 10*time.Second {
			t.Errorf("%+v", v)
		}
	})
}

func TestNodeWithoutLeaseIsSilentFromTheFirstList(t *testing.T) {
	watched(t, nil, func(t *testing.T, w *Watch, _ func(int)) {
		if v := w.View(); !v.Synced || v.Silent() || v.Proving() > 14*time.Second {
			t.Errorf("at first: %+v", v)
		}
		<-time.After(41 * time.Second)
		if v := w.View(); !v.Silent() || v.Renewals != 0 {
			t.Errorf("after 41 s: %+v", v)
		}
	})
}

func TestLiveReadShowsWhatTheWatchMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(at(0, 40))
		w := &Watch{client: client.CoordinationV1().Leases(v1.NamespaceNodeLease), node: "n", duration: byDefault}
		w.observe(at(0, 40))
		w.sync()
		<-time.After(time.Minute)
		if _, err := w.client.Update(t.Context(), at(50, 40), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if v, err := w.Read(t.Context()); err != nil || v.Renewals != 1 || v.Unchanged > time.Second {
			t.Errorf("%+v, %v", v, err)
		}
	})
}
