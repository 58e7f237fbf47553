package cli

import (
	"context"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/termination/pod"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// node returns the node, and whether it has our finalizer.
func (l *whyServer) node(name string) (node *v1.Node, protected bool) {
	l.t.Helper()
	node, err := l.client.CoreV1().Nodes().Get(l.ctx, name, metav1.GetOptions{})
	l.must(err, "read node")
	return node, termination.Protected(node)
}

// grantNodes lets the user do what the chart's Job before an uninstall may do.
func (l *whyServer) grantNodes(user string) {
	l.t.Helper()
	_, err := l.client.RbacV1().ClusterRoles().Create(l.ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "nodes"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "patch"}},
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"},
				ResourceNames: []string{cluster.NodeTerminatorLease}, Verbs: []string{"get", "update"}},
		},
	}, metav1.CreateOptions{})
	l.must(err, "create role")
	l.grant(user, "nodes")
}

func (l *whyServer) leadNodes(holder string) {
	l.t.Helper()
	_, err := l.client.CoordinationV1().Leases(cluster.ControlPlane).Create(l.ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: cluster.NodeTerminatorLease},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: ptr.To[int32](2),
			RenewTime: &metav1.MicroTime{Time: time.Now().Add(time.Minute)}},
	}, metav1.CreateOptions{})
	l.must(err, "create the Lease")
}

// #7 of the promises: a node that nobody deletes has nothing of ours after the rollback.
func TestRollbackOfNodes(t *testing.T) {
	l := open(t, current)
	const foreign = "example.com/f"
	l.addNode("live", map[string]string{termination.Label: "30m"}, foreign, termination.Finalizer)
	l.addNode("other", nil, foreign)
	l.grantNodes("job")
	l.leadNodes("node-terminator-1")
	rollback := func(code int, words string, args ...string) {
		t.Helper()
		stdout, stderr, got := l.run(append([]string{"rollback", "nodes", "--as=job"}, args...)...)
		if text := strings.Join(strings.Fields(stdout+stderr), " "); got != code || !strings.Contains(text, words) {
			t.Errorf("rollback nodes %v: exit code %d, want %d; want %q in\n%s", args, got, code, words, stdout+stderr)
		}
	}
	rollback(2, "remove: finalizer exeunt.io/node-termination of Node live")
	if _, protected := l.node("live"); !protected {
		t.Error("the finalizer is gone without --confirm")
	}
	rollback(0, "Nothing is left to do.", "--confirm")
	if node, protected := l.node("live"); protected || len(node.Finalizers) != 1 || node.Labels[termination.Label] != "30m" {
		t.Errorf("the node is %+v", node.ObjectMeta)
	}
	lease, err := l.client.CoordinationV1().Leases(cluster.ControlPlane).Get(l.ctx, cluster.NodeTerminatorLease, metav1.GetOptions{})
	if err != nil || *lease.Spec.HolderIdentity != cluster.StandbyHolder {
		t.Errorf("the Lease is %+v, %v", lease, err)
	}
	l.addNode("dying", nil, foreign, termination.Finalizer)
	l.must(l.client.CoreV1().Nodes().Delete(l.ctx, "dying", metav1.DeleteOptions{}), "delete node")
	rollback(2, "wait: finalizer exeunt.io/node-termination of Node dying: it is being deleted", "--confirm")
	if _, protected := l.node("dying"); !protected {
		t.Error("a node that is being deleted lost the finalizer")
	}
}

func TestStatusNamesNodesThatNobodyEnds(t *testing.T) {
	l := open(t, current)
	l.addNode("left", map[string]string{termination.Label: "1d"}, termination.Finalizer)
	stdout, stderr, code := l.run("status")
	text := strings.Join(strings.Fields(stdout), " ")
	for _, want := range []string{
		"NODES: 1 with the label, 1 with the finalizer, 0 being deleted; node-terminator is unseen",
		`! node left is not served: label exeunt.io/termination-grace-period: "1d" is no period`,
		"! the finalizer exeunt.io/node-termination is on 1 node (left), and node-terminator was not seen at work",
		"exeunt rollback nodes --confirm",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("status lacks %q:\n%s", want, stdout)
		}
	}
	if code != 2 || !strings.Contains(stderr, "nodes cannot end as they should") {
		t.Errorf("exit code %d, %q", code, stderr)
	}
}

// Without a binding in the namespace a viewer may not list ConfigMaps: the report is not seen, the answer is the same.
func TestViewerMayExplainNode(t *testing.T) {
	l := open(t, current)
	l.must(sandbox.Apply(l.ctx, l.plane.RESTConfig(), deploy.Viewer), "apply the roles")
	l.grant("viewer", "exeunt-viewer")
	l.leadNodes("node-terminator-1")
	l.addNode("n1", map[string]string{termination.Label: "30m"}, termination.Finalizer)
	l.createReadyPod("n1", "a", func(p *v1.Pod) { p.Annotations = map[string]string{pod.DoNotDisruptAnnotation: "true"} })
	l.must(l.client.CoreV1().Nodes().Delete(l.ctx, "n1", metav1.DeleteOptions{}), "delete node")
	report, code := l.why("node/n1", "--as=viewer")
	if code != 2 || report.Verdict != blocker.Waiting || len(report.Incomplete) != 1 || report.Deadline == nil ||
		!strings.HasPrefix(report.Incomplete[0], "no right to list configmaps in namespace exeunt-system") {
		t.Errorf("exit code %d, %+v", code, report)
	}
	_, err := l.client.CoreV1().Namespaces().Create(l.ctx,
		&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: deploy.Namespace}}, metav1.CreateOptions{})
	l.must(err, "create namespace")
	_, err = l.client.RbacV1().RoleBindings(deploy.Namespace).Create(l.ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "viewer"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "exeunt-viewer-reports"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "viewer"}},
	}, metav1.CreateOptions{})
	l.must(err, "bind role")
	isWhole := func(context.Context) (bool, error) {
		report, code = l.why("node/n1", "--as=viewer")
		return code == 2 && report.Verdict == blocker.Waiting && len(report.Incomplete) == 0, nil
	}
	err = wait.PollUntilContextTimeout(l.ctx, 100*time.Millisecond, harness.Timeout, true, isWhole)
	l.must(err, "read the reports with the right in their namespace")
}
