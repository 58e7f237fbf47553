package cli

import (
	"os"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// withoutAudit returns the kubeconfig of a user with the default rights of provisioner.
func withoutAudit(s *harness.Session) string {
	s.T.Helper()
	const role = "exeunt:provisioner"
	user := sandbox.User("unauthorized")
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user.Name()}}
	_, err := s.Client.RbacV1().ClusterRoleBindings().Create(s.Ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "unauthorized"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName,
			Kind: "ClusterRole", Name: role}, Subjects: subjects,
	}, metav1.CreateOptions{})
	s.Must(err, "bind role")
	_, err = s.Client.RbacV1().RoleBindings(deploy.Namespace).Create(s.Ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "unauthorized"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role",
			Name: role}, Subjects: subjects,
	}, metav1.CreateOptions{})
	s.Must(err, "bind role")
	kubeconfig, err := s.Plane.Kubeconfig(s.Ctx, user)
	s.Must(err, "write kubeconfig")
	return kubeconfig
}

// metric is the line of the metric without its value.
const metric = `exeunt_orphaned_volumes{driver_name="csimock.exeunt.io"} `

// TestLeaderCountsOrphans runs two provisioners, first without and then with the rights for
// audits: only the leader has the metric.
func TestLeaderCountsOrphans(t *testing.T) {
	s := harness.Own(t, harness.Setup{NoProvisioner: true, DriverFlags: "--volumes=2"})
	s.CreateClaim("claim", harness.DeleteClass)
	args := []string{"--leader-election", "--audit-interval=10m"}
	first, err := s.Plane.StartProvisioner(s.Ctx, s.Driver, sandbox.Controller{
		Name: "unauthorized", Kubeconfig: withoutAudit(s), HonorReclaimPolicy: true,
		Args: append(args, "--http-endpoint=127.0.0.1:0"),
	})
	s.Must(err, "start provisioner")
	s.AwaitLog(first, "no right to list pods in cluster of the provisioner")
	if body, _ := s.HTTPGet(first, "/metrics"); strings.Contains(body, metric) {
		t.Error("the metric counts orphans of an incomplete audit")
	}
	s.StopProcess(first)

	rights, err := os.ReadFile(harness.InCheckout("deploy", "provisioner", "audit", "rbac.yaml"))
	s.Must(err, "read manifest")
	s.Must(sandbox.ApplyYAML(s.Ctx, s.Plane.RESTConfig(), rights), "grant the rights for audits")
	s.AwaitBound("claim")
	leader := s.StartProvisioner(s.Driver, "leader", nil, args...)
	s.AwaitLog(leader, "Audited volumes")
	standby := s.StartProvisioner(s.Driver, "standby", nil, args...)
	if body, _ := s.HTTPGet(leader, "/metrics"); !strings.Contains(body, metric+"2\n") {
		t.Errorf("the leader does not count two orphans:\n%s", body)
	}
	s.AwaitLog(standby, "Filling caches")
	if body, _ := s.HTTPGet(standby, "/metrics"); strings.Contains(body, metric) {
		t.Error("the standby counts orphans")
	}
	expectNoDeletion(s)
}
