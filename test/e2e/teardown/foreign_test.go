package teardown

import (
	"maps"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// removeOurs removes what the cluster has of this project, so that it is one where nobody has heard of it.
func (r *rig) removeOurs() {
	r.T.Helper()
	ours, none := metav1.ListOptions{LabelSelector: deploy.PartOf + "=" + deploy.Project}, metav1.DeleteOptions{}
	r.Must(r.Client.RbacV1().ClusterRoleBindings().DeleteCollection(r.Ctx, none, ours), "delete bindings")
	r.Must(r.Client.RbacV1().ClusterRoles().DeleteCollection(r.Ctx, none, ours), "delete roles")
	r.Must(r.Client.CoreV1().Namespaces().Delete(r.Ctx, deploy.Namespace, none), "delete namespace")
	r.Until("the namespace is gone", func() bool {
		_, err := r.Client.CoreV1().Namespaces().Get(r.Ctx, deploy.Namespace, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

// expectWritten checks what the command has written, by the audit log: of the user's objects what the plan names, once
// each, and of its own what the documentation names. The probes of the freeze are dry runs.
func (r *rig) expectWritten(archive string) {
	r.T.Helper()
	once := []string{"delete pods db-0", "delete persistentvolumeclaims data-db-0", "delete services web",
		"patch persistentvolumes " + archive, "delete alives cluster", "create alives cluster",
		"create leases exeunt-teardown", "patch configmaps exeunt-teardown-plan-0",
		"patch customresourcedefinitions alives.lifecycle.exeunt.io", "patch namespaces exeunt-system",
		"patch validatingadmissionpolicies exeunt-alive", "patch validatingadmissionpolicybindings exeunt-alive",
		"patch validatingadmissionpolicies exeunt-alive-definition",
		"patch validatingadmissionpolicybindings exeunt-alive-definition"}
	more := []string{"create events", "create persistentvolumeclaims", "patch alives cluster", "patch alives/status cluster",
		"patch configmaps exeunt-teardown-report", "patch configmaps exeunt-teardown-report-0",
		"patch validatingadmissionpolicies exeunt-teardown-freeze",
		"patch validatingadmissionpolicybindings exeunt-teardown-freeze", "update leases exeunt-teardown"}
	counts := map[string]int{}
	for _, request := range r.written(0) {
		event, _, _ := strings.Cut(request, " cluster.") // the names of events are of their time
		counts[strings.TrimSpace(event)]++
	}
	for _, request := range slices.Sorted(maps.Keys(counts)) {
		r.T.Logf("%d x %s", counts[request], request)
		if !slices.Contains(slices.Concat(once, more), request) || slices.Contains(once, request) && counts[request] != 1 {
			r.T.Errorf("the command sent %s %d times", request, counts[request])
		}
	}
	for _, request := range slices.Concat(once, more) {
		if counts[request] == 0 {
			r.T.Errorf("the command did not send %s", request)
		}
	}
}

// A cluster where nothing of ours is installed: the audit log has what the command wrote there. What it leaves refuses new
// disks and load balancers, and nothing else.
func TestCommandWritesOnlyWhatThePlanNames(t *testing.T) {
	setup := stock
	setup.Restarts = true
	r := newRig(t, setup)
	r.removeOurs()
	archive := keep(r.addDynamic("archive", harness.RetainClass))
	r.createSet("db", 1)
	data := r.diskOf("data-db-0")
	r.createUser("stateless")
	createService(r.Session, "web")
	awaitService(r.Session, "web", "has an address", hasAddress)
	plan := r.document(r.admin(0, "-o", "json"))
	if written := r.written(0); len(written) > 0 || len(plan.Items) != 3 {
		t.Errorf("the plan has %d items, and the command wrote %q", len(plan.Items), written)
	}
	r.admin(0, "--confirm="+r.id())
	r.expectDisks(data, archive)
	r.expectWritten(archive.volume)
	_, err := r.Client.CoreV1().Pods(r.Namespace).Get(r.Ctx, "stateless", metav1.GetOptions{})
	r.Must(err, "read the pod without a claim")
	r.expectNothingComesBack()
}
