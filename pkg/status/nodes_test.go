package status

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/why/cluster/clustertest"
)

// terminated returns a node with the period as its label, and the finalizer of node-terminator.
func terminated(name, period string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name),
		Labels: map[string]string{termination.Label: period}, Finalizers: []string{termination.Finalizer}}}
}

// reportOf returns the report of the node, whose deadline was the given time ago.
func reportOf(t *testing.T, node string, ago time.Duration) *corev1.ConfigMap {
	t.Helper()
	deadline := time.Now().Add(-ago)
	text, err := json.Marshal(termination.Report{Node: node, UID: "uid-" + node, Deadline: &deadline,
		Phase: termination.PhaseStopping, Reason: "InstanceUnreadable"})
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "exeunt-system", Name: "node-termination-uid-" + node,
		Labels: map[string]string{termination.ReportLabel: node}}, Data: map[string]string{termination.ReportKey: string(text)}}
}

func TestNodesOfNodeTerminator(t *testing.T) {
	alive := leaderLease("kube-system", "node-terminator", "node-terminator-1", time.Second)
	gone := leaderLease("kube-system", "node-terminator", "node-terminator-1", time.Hour)
	for name, tc := range map[string]struct {
		cluster clustertest.Objects
		want    []string // parts of the findings
	}{
		"all is well":        {clustertest.Objects{"nodes": {terminated("a", "30m")}, "leases": {alive}}, nil},
		"#05 invalid label":  {clustertest.Objects{"nodes": {terminated("a", "1d")}, "leases": {alive}}, []string{`node a is not served: label exeunt.io/termination-grace-period: "1d" is no period`}},
		"program is gone":    {clustertest.Objects{"nodes": {terminated("a", "30m"), terminated("b", "30m")}, "leases": {gone}}, []string{"the finalizer exeunt.io/node-termination is on 2 nodes (a, b), and node-terminator is gone"}},
		"program is unseen":  {clustertest.Objects{"nodes": {terminated("a", "30m")}}, []string{"and node-terminator was not seen at work"}},
		"overdue":            {clustertest.Objects{"nodes": {terminated("a", "30m")}, "leases": {alive}, "configmaps": {reportOf(t, "a", 5*time.Minute)}}, []string{"s: Stopping InstanceUnreadable"}},
		"not overdue yet":    {clustertest.Objects{"nodes": {terminated("a", "30m")}, "leases": {alive}, "configmaps": {reportOf(t, "a", 30*time.Second)}}, nil},
		"report of the past": {clustertest.Objects{"nodes": {terminated("a", "30m")}, "leases": {alive}, "configmaps": {reportOf(t, "b", time.Hour)}}, nil},
	} {
		report := Read(t.Context(), Options{Reader: clustertest.NewReader(t, tc.cluster.ServeHTTP)})
		if report.Nodes == nil || len(report.Nodes.Findings) != len(tc.want) || len(report.Nodes.Unseen) > 0 {
			t.Errorf("%s: %+v, want %q", name, report.Nodes, tc.want)
			continue
		}
		for i, want := range tc.want {
			if !strings.Contains(report.Nodes.Findings[i], want) {
				t.Errorf("%s: %q, want %q", name, report.Nodes.Findings[i], want)
			}
		}
		if len(report.Findings) > 0 || report.Protection == ProtectionPartly {
			t.Errorf("%s: the volumes are said to be %v: %q", name, report.Protection, report.Findings)
		}
	}
}

func TestClusterWithoutOurNodesHasNone(t *testing.T) {
	cluster := clustertest.Objects{"nodes": {&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}}
	if found := Read(t.Context(), Options{Reader: clustertest.NewReader(t, cluster.ServeHTTP)}).Nodes; found != nil {
		t.Errorf("%+v", found)
	}
}

// readWithout returns the report of a user who may not read paths that end so.
func readWithout(t *testing.T, objects clustertest.Objects, hidden string) Report {
	t.Helper()
	return Read(t.Context(), Options{Reader: clustertest.NewReader(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, hidden) {
			objects.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`))
	})})
}

// What a user may not read of nodes says nothing about volumes.
func TestNodesThatWereNotSeenLeaveVolumesAlone(t *testing.T) {
	objects := clustertest.Objects{"nodes": {terminated("a", "30m")}, "leases": {leaderLease("kube-system", "node-terminator", "x", 0)}}
	for _, hidden := range []string{"/api/v1/nodes", "configmaps"} {
		report := readWithout(t, objects, hidden)
		if report.Nodes == nil || len(report.Nodes.Unseen) != 1 || !strings.HasPrefix(report.Nodes.Unseen[0], "no right to list ") ||
			strings.Contains(strings.Join(report.Incomplete, ""), "no right") {
			t.Errorf("%s: %+v, %q", hidden, report.Nodes, report.Incomplete)
		}
	}
}

// Without the right to list Leases or workloads nothing says that the nodes cannot be deleted.
func TestUnreadNodeTerminatorIsNoFinding(t *testing.T) {
	objects := clustertest.Objects{"nodes": {terminated("a", "30m")}}
	for _, hidden := range []string{"/leases", "/deployments"} {
		report := readWithout(t, objects, hidden)
		if report.Nodes == nil || report.Nodes.Program != "unseen" || len(report.Nodes.Findings) > 0 ||
			!strings.HasPrefix(strings.Join(report.Nodes.Unseen, ""), "whether node-terminator runs") {
			t.Errorf("without %s: %+v", hidden, report.Nodes)
		}
	}
}

func TestMissingRightsOfNodeTerminatorAreNamed(t *testing.T) {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "node-terminator",
		Labels: map[string]string{"app.kubernetes.io/name": deploy.NodeTerminatorAccount, deploy.PartOf: deploy.Project}}}
	deployment.Spec.Template.Spec.ServiceAccountName = "account"
	objects := clustertest.Objects{"nodes": {terminated("a", "30m")}, "deployments": {deployment},
		"leases": {leaderLease("kube-system", "node-terminator", "x", 0)}}
	report := Read(t.Context(), Options{Reader: clustertest.NewReader(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			objects.ServeHTTP(w, r)
			return
		}
		review := authorizationv1.SubjectAccessReview{TypeMeta: metav1.TypeMeta{Kind: "SubjectAccessReview",
			APIVersion: "authorization.k8s.io/v1"}}
		body := make([]byte, r.ContentLength)
		_, _ = r.Body.Read(body)
		review.Status.Allowed = !strings.Contains(string(body), "eviction")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(review)
	})})
	if len(report.Nodes.Findings) != 1 || report.Nodes.Findings[0] != "ns/account may not create pods/eviction" {
		t.Errorf("%+v", report.Nodes)
	}
}
