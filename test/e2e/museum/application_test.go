package museum

import (
	"encoding/json"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// TestUnseenChildIsNotAbsent explains an application to a user who may not read its child.
func TestUnseenChildIsNotAbsent(t *testing.T) {
	r := &room{Session: harness.Join(t, harness.Setup{NoPrograms: true})}
	r.createDeployment(r.Namespace, "argocd-application-controller", "quay.io/argoproj/argocd:v3.1.0", 1, 1)
	r.createCustom(r.createPulumi(), "Stack", "child", strangerFinalizer)
	r.deleteCustom(stacks, "child")
	args := r.deleteApplication("child")
	const user = "reads-no-stacks"
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: append(slices.Clone(rights), rule(applications.Group, "applications"))}
	_, err := r.Client.RbacV1().ClusterRoles().Create(r.Ctx, role, metav1.CreateOptions{})
	r.Must(err, "create role")
	_, err = r.Client.RbacV1().ClusterRoleBindings().Create(r.Ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	r.Must(err, "create binding")
	var report blocker.Report
	r.Until("the user may read the application", func() bool {
		stdout, _, _ := r.run(append([]string{"why", "-o", "json", "-n", r.Namespace, "--as", user}, args...)...)
		return json.Unmarshal([]byte(stdout), &report) == nil
	})
	if report.Verdict != blocker.Unknown || !hasReason(report.Blockers, blocker.DependentsUnseen) {
		t.Errorf("verdict %v of %+v, want unknown for DependentsUnseen", report.Verdict, report.Blockers)
	}
}
