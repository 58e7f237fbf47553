package nodeterminator

import (
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/exeunt-io/exeunt/pkg/nodeterminator/lease"
	"github.com/exeunt-io/exeunt/pkg/termination"
)

// The worker of the node may be busy when the kubelet comes back.
func TestProofHoldsUntilLeaseIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		renewed := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: v1.NamespaceNodeLease, Name: "n"},
			Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: time.Now()}}}
		client := fake.NewClientset(renewed.DeepCopy())
		caches, err := NewCaches(informers.NewSharedInformerFactory(client, 0))
		if err != nil {
			t.Fatal(err)
		}
		off := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: v1.NodeSpec{Taints: []v1.Taint{
			{Key: v1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: v1.TaintEffectNoExecute}}}}
		term := &nodeTermination{name: "n", lease: lease.Start(t.Context(), client, "n", func() {})}
		synctest.Wait()
		c := &Controller{caches: caches}
		holds := c.holds(off, term, &observation{evidence: c.evidenceOf(off, term)})
		if !holds() {
			t.Error("nothing happened, and the proof does not hold")
		}
		renewed.Spec.RenewTime = &metav1.MicroTime{Time: time.Now().Add(time.Second)}
		leases := client.CoordinationV1().Leases(v1.NamespaceNodeLease)
		if _, err := leases.Update(t.Context(), renewed, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if holds() {
			t.Error("the kubelet has renewed its Lease, and the proof holds")
		}
		term.lease.Stop()
	})
}

func TestBackSince(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		returned time.Duration
		ready    v1.ConditionStatus
		since    time.Time
		want     time.Time
	}{
		"never away":                  {want: time.Time{}},
		"as this process has watched": {returned: time.Minute, want: now.Add(-time.Minute)},
		"as the condition says": {ready: v1.ConditionTrue, since: now.Add(-time.Second),
			want: now.Add(-time.Second)},
		"the later one counts": {returned: time.Minute, ready: v1.ConditionTrue, since: now.Add(-time.Hour),
			want: now.Add(-time.Minute)},
		"not ready":                      {ready: v1.ConditionUnknown, since: now.Add(-time.Second)},
		"a condition with a future time": {ready: v1.ConditionTrue, since: now.Add(time.Hour)},
	} {
		stored := &v1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{termination.Label: "30m"}}}
		stored.Status = v1.NodeStatus{Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: tc.ready,
			LastTransitionTime: metav1.Time{Time: tc.since}}}}
		cached, err := trimNode(stored)
		if err != nil {
			t.Fatal(err)
		}
		if got := backSince(cached.(*v1.Node), evidence{lease: lease.View{Returned: tc.returned}}, now); !got.Equal(tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
