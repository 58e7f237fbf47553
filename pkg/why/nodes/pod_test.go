package nodes

import (
	"encoding/json"
	"net/http"
	"path"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/cluster/clustertest"
)

// withoutNodes is the Explorer of a cluster without nodes.
type withoutNodes struct {
	chain.Explorer
	reader *cluster.Reader
}

func (e withoutNodes) Reader() *cluster.Reader    { return e.reader }
func (e withoutNodes) Commands() cluster.Commands { return cluster.Commands{} }

// newWithoutNodes returns the Explorer of a cluster whose kube-controller-manager renewed its Lease of
// 15 s the given time ago; a negative time is for no Lease.
func newWithoutNodes(t *testing.T, renewed time.Duration) withoutNodes {
	t.Helper()
	return withoutNodes{reader: clustertest.NewReader(t, func(w http.ResponseWriter, request *http.Request) {
		name := path.Base(request.URL.Path)
		var answer any = metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: http.StatusNotFound,
			Reason: metav1.StatusReasonNotFound, Details: &metav1.StatusDetails{Name: name},
		}
		code := http.StatusNotFound
		switch {
		case strings.HasSuffix(request.URL.Path, "/events"):
			code, answer = http.StatusOK, corev1.EventList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
		case name == "kube-controller-manager" && renewed >= 0:
			code, answer = http.StatusOK, coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{
				HolderIdentity: ptr.To("node-1"), LeaseDurationSeconds: ptr.To[int32](15),
				RenewTime: &metav1.MicroTime{Time: time.Now().Add(-renewed)},
			}}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	})}
}

// The pod garbage collector deletes a pod about a minute after its node: none that waits for the collector is stuck.
func TestPodOfGoneNodeWaitsForLivingCollector(t *testing.T) {
	for name, tc := range map[string]struct {
		ended   time.Duration // how long ago the grace period ended
		renewed time.Duration
		want    blocker.Verdict
		force   bool
	}{
		"within the grace period":        {-time.Minute, 0, blocker.Waiting, false},
		"just ended":                     {5 * time.Second, 0, blocker.Waiting, false},
		"ended an hour ago":              {time.Hour, 0, blocker.Unknown, false},
		"between two leaders":            {5 * time.Second, 20 * time.Second, blocker.Unknown, false},
		"the leader is gone for an hour": {5 * time.Second, time.Hour, blocker.Stuck, true},
		"no Lease":                       {5 * time.Second, -1, blocker.Stuck, true},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "shop", Name: "db-0", DeletionTimestamp: &metav1.Time{Time: time.Now().Add(-tc.ended)},
					DeletionGracePeriodSeconds: ptr.To[int64](30),
				},
				Spec: corev1.PodSpec{NodeName: "gone"},
			}
			fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
			if err != nil {
				t.Fatal(err)
			}
			found := explainPod(t.Context(), newWithoutNodes(t, tc.renewed), &unstructured.Unstructured{Object: fields})
			if len(found) != 1 || found[0].Reason != blocker.NodeGone || found[0].Verdict != tc.want {
				t.Fatalf("the blockers are %+v, want %v NodeGone", found, tc.want)
			}
			if force := strings.Contains(found[0].Next, "--force"); force != tc.force {
				t.Errorf("the next step is %q; it forces the end: %v, want %v", found[0].Next, force, tc.force)
			}
		})
	}
}

// A reboot takes minutes: only a node that is silent for longer is stuck, and its taint is the last resort.
func TestSilentNodeIsStuckAfterFiveMinutes(t *testing.T) {
	for name, tc := range map[string]struct {
		silent time.Duration
		lease  bool
		want   blocker.Verdict
	}{
		"for 90 s":                     {90 * time.Second, true, blocker.Unknown},
		"for 90 s, without a Lease":    {90 * time.Second, false, blocker.Unknown},
		"for four minutes":             {4 * time.Minute, true, blocker.Unknown},
		"for six minutes":              {6 * time.Minute, true, blocker.Stuck},
		"for an hour, without a Lease": {time.Hour, false, blocker.Stuck},
	} {
		t.Run(name, func(t *testing.T) {
			sign := time.Now().Add(-tc.silent)
			objects := clustertest.Objects{"nodes": {&corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: "n1"},
				Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{
					Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastHeartbeatTime: metav1.NewTime(sign.Add(-time.Minute)), LastTransitionTime: metav1.NewTime(sign),
				}}},
			}}}
			if tc.lease {
				objects["leases"] = []metav1.Object{&coordinationv1.Lease{
					ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: "n1"},
					Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To("n1"), LeaseDurationSeconds: ptr.To[int32](40), RenewTime: &metav1.MicroTime{Time: sign}},
				}}
			}
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db-0", DeletionTimestamp: &metav1.Time{Time: sign}, DeletionGracePeriodSeconds: ptr.To[int64](30)},
				Spec:       corev1.PodSpec{NodeName: "n1"},
			}
			fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
			if err != nil {
				t.Fatal(err)
			}
			found := explainPod(t.Context(), withoutNodes{reader: clustertest.NewReader(t, objects.ServeHTTP)}, &unstructured.Unstructured{Object: fields})
			if len(found) != 1 || found[0].Reason != blocker.NodeUnreachable || found[0].Verdict != tc.want {
				t.Fatalf("the blockers are %+v, want %v NodeUnreachable", found, tc.want)
			}
			first, _, _ := strings.Cut(found[0].Next, "last resort")
			if taints := strings.Contains(found[0].Next, "out-of-service"); strings.Contains(first, "out-of-service") || taints != (tc.want == blocker.Stuck) {
				t.Errorf("the next step is %q", found[0].Next)
			}
		})
	}
}
