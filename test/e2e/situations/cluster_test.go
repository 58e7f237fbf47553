package situations

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os/exec"
	"path/filepath"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// place is where a situation is built: a namespace in a cluster.
type place struct {
	*harness.Session
	// driver is the situation's own driver, if it has one.
	driver *harness.ScriptedDriver
}

// run runs the exeunt program on the cluster and returns its output and exit code.
func (r *place) run(args ...string) (stdout, stderr string, code int) {
	r.T.Helper()
	command := exec.CommandContext(r.Ctx, filepath.Join(harness.Binaries().Dir, "exeunt"),
		append(args, "--kubeconfig", r.Plane.AdminKubeconfig)...)
	var out, diagnostics bytes.Buffer
	command.Stdout, command.Stderr = &out, &diagnostics
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		r.T.Fatalf("run exeunt %v: %v", args, err)
	}
	return out.String(), diagnostics.String(), command.ProcessState.ExitCode()
}

// why explains the object in the situation's namespace.
func (r *place) why(args ...string) blocker.Report {
	r.T.Helper()
	report, err := r.runWhy("", args)
	r.Must(err, "explain")
	r.paste(report)
	return report
}

// runWhy explains the object as the user with the program. An empty user is the administrator.
func (r *place) runWhy(user string, args []string) (blocker.Report, error) {
	r.T.Helper()
	if user != "" {
		args = append([]string{"--as", user}, args...)
	}
	stdout, stderr, _ := r.run(append([]string{"why", "-o", "json", "-n", r.Namespace}, args...)...)
	var report blocker.Report
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		return report, fmt.Errorf("exeunt why %v printed %q and %q: %w", args, stdout, stderr, err)
	}
	return report, nil
}

// awaitGone waits until the object is gone, and the program says so.
func (r *place) awaitGone(args []string) {
	r.T.Helper()
	r.Until("the object is gone", func() bool {
		report, err := r.explain("", args)
		return err == nil && report.Verdict == blocker.Gone
	})
	if report := r.why(args...); report.Verdict != blocker.Gone {
		r.T.Errorf("exeunt why %v says %v after the object was gone: %+v", args, report.Verdict, report)
	}
}

// rights are what the command reads, apart from the explained object itself.
var rights = []rbacv1.PolicyRule{
	rule("", "pods"), rule("", "persistentvolumes"), rule("", "persistentvolumeclaims"), rule("", "events"),
	rule("", "nodes"),
	rule("", "services"), rule("", "secrets"), rule("apps", "deployments", "statefulsets", "daemonsets"),
	rule("coordination.k8s.io", "leases"), rule("discovery.k8s.io", "endpointslices"),
	rule("policy", "poddisruptionbudgets"),
	rule("storage.k8s.io", "volumeattachments", "csidrivers", "csinodes"), rule("storage.k8s.io", "storageclasses"),
	rule("apiregistration.k8s.io", "apiservices"), rule("apiextensions.k8s.io", "customresourcedefinitions"),
	rule("admissionregistration.k8s.io", "validatingwebhookconfigurations", "mutatingwebhookconfigurations"),
	rule("admissionregistration.k8s.io", "validatingadmissionpolicies", "validatingadmissionpolicybindings",
		"mutatingadmissionpolicies", "mutatingadmissionpolicybindings"),
	rule("snapshot.storage.k8s.io", "volumesnapshots", "volumesnapshotcontents"),
	rule("rbac.authorization.k8s.io", "clusterroles", "clusterrolebindings"),
}

// objectRights are rights to explained objects that the command reads for nothing else. They
// are never missing.
var objectRights = []rbacv1.PolicyRule{{
	APIGroups: []string{"keda.sh", "ray.io", "kueue.x-k8s.io", "kubevirt.io", "monitoring.coreos.com",
		"acme.cert-manager.io", "elbv2.k8s.aws", "networking.k8s.io", "situations.example", "operator.victoriametrics.com",
		"grafana.integreatly.org", "opentelemetry.io", "karpenter.sh", alive.Group},
	Resources: []string{"*"}, Verbs: []string{"get", "list"},
}, {
	APIGroups: []string{"pulumi.com", "rabbitmq.com", "infra.contrib.fluxcd.io", "argoproj.io",
		"owners.situations.example", "conversion.situations.example", "admission.situations.example"},
	Resources: []string{"*"}, Verbs: []string{"get", "list"},
}, rule("", "namespaces", "configmaps")}

func rule(group string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: []string{"get", "list"}}
}

// expectNeverStuckWithoutRights explains the object once without each right.
func (r *place) expectNeverStuckWithoutRights(args []string) {
	r.T.Helper()
	for missing, report := range r.whyWithoutRights(args) {
		if report.Verdict == blocker.Stuck {
			r.T.Errorf("without %s, %v is called stuck: %+v", missing, args, report)
		}
	}
}

// expectStuckOrUnknownWithoutRights explains an object that is stuck once without each right:
// what was not seen never counts as alive.
func (r *place) expectStuckOrUnknownWithoutRights(args []string) {
	r.T.Helper()
	for missing, report := range r.whyWithoutRights(args) {
		if report.Verdict != blocker.Stuck && report.Verdict != blocker.Unknown {
			r.T.Errorf("without %s, the verdict of %v is %v: %+v", missing, args, report.Verdict, report)
		}
		if report.Verdict == blocker.Unknown && len(report.Incomplete) == 0 {
			r.T.Errorf("without %s, %v is unknown, and nothing is called incomplete: %+v", missing, args, report)
		}
	}
}

// whyWithoutRights explains the object once without each right, by the resources that are
// missing. Without the right to read the object itself there is no report. One right, which
// differs between situations, is taken from a user of the program.
func (r *place) whyWithoutRights(args []string) map[string]blocker.Report {
	r.T.Helper()
	sample := int(crc32.ChecksumIEEE([]byte(r.T.Name()))) % len(rights)
	reports := map[string]blocker.Report{}
	for i, rule := range rights {
		explain := r.explain
		if i == sample {
			explain = r.runWhy
		}
		missing := strings.Join(rule.Resources, ", ")
		report, err := explain(r.createUserWithout(i), args)
		if err == nil {
			reports[missing] = report
		} else if !apierrors.IsForbidden(err) && !strings.Contains(err.Error(), "no right") {
			r.T.Errorf("without %s, exeunt why %v: %v", missing, args, err)
		}
	}
	return reports
}
