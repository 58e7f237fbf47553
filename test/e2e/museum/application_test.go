package museum

import (
	"slices"
	"testing"

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
	r.createUser(user, append(slices.Clone(rights), rule(applications.Group, "applications")))
	report, err := r.runWhy(user, args)
	r.Must(err, "explain")
	if report.Verdict != blocker.Unknown || !hasReason(report.Blockers, blocker.DependentsUnseen) {
		t.Errorf("verdict %v of %+v, want unknown for DependentsUnseen", report.Verdict, report.Blockers)
	}
}
