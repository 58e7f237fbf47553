package situations

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// TestUnseenChildIsNotAbsent explains an application to a user who may not read its child.
func TestUnseenChildIsNotAbsent(t *testing.T) {
	r := &place{Session: harness.Join(t, harness.Setup{NoPrograms: true})}
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

// failedApplications returns the situations of Applications whose deletion Argo CD reports as failed.
func failedApplications() []situation {
	build := func(r *place) []string {
		const name = "argocd-application-controller"
		r.createDeployment(r.Namespace, name, "quay.io/argoproj/argocd:v3.1.0", 1, 1, func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].Command = []string{name}
		})
		r.createCustom(r.createCRD(applications.Group, "Application"), "Application", "application",
			"resources-finalizer.argocd.argoproj.io")
		args := r.deleteCustom(applications, "application")
		application := r.live(applications, "application")
		application.Object["status"] = map[string]any{"conditions": []any{map[string]any{
			"type": "DeletionError", "message": "cluster https://10.0.0.1 is not known",
			"lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
		}}}
		_, err := r.dynamic().Resource(applications).Namespace(r.Namespace).
			UpdateStatus(r.Ctx, application, metav1.UpdateOptions{})
		r.Must(err, "write status of application")
		return args
	}
	return []situation{{
		number: "52e", name: "Argo CD reports that it cannot delete the application", alone: true,
		build: build, verdict: blocker.Stuck, roots: []blocker.Reason{blocker.ControllerFails},
		next: "cluster https://10.0.0.1 is not known", evidence: []string{"condition DeletionError since"},
		step: func(r *place) { r.removeFinalizers(applications, "application") },
	}}
}
