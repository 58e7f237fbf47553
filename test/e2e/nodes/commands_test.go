package nodes

import (
	"encoding/json"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/forecast"
	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// exeunt runs the command, and returns what it prints and its exit code.
func (e *ending) exeunt(args ...string) (output string, code int) {
	e.T.Helper()
	path, err := harness.Binaries().Path("exeunt")
	e.Must(err, "find exeunt")
	process := exec.CommandContext(e.Ctx, path, append(args, "--kubeconfig="+e.Plane.AdminKubeconfig)...)
	text, err := process.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		e.T.Fatalf("exeunt %q: %v", args, err)
	}
	if exit != nil {
		text = append(text, exit.Stderr...)
	}
	return string(text), process.ProcessState.ExitCode()
}

// reported returns the report of exeunt with -o json, and its exit code.
func reported[T any](e *ending, args ...string) (report T, code int) {
	e.T.Helper()
	text, code := e.exeunt(append(args, "-o", "json")...)
	e.Must(json.Unmarshal([]byte(text), &report), "decode "+text)
	return report, code
}

// TestCommandsBesideNodeTerminator follows a node from the forecast to the report, then rolls back while a leader lives.
func TestCommandsBesideNodeTerminator(t *testing.T) {
	e := startEnding(t, 5, "--leader-elect=true", "--leader-elect-lease-duration=8s", "--leader-elect-renew-deadline=3s",
		"--leader-elect-retry-period=1s")
	name := e.take("20s")
	protected := e.pod(name, "guarded", annotated("karpenter.sh/do-not-disrupt", "true"), grace(5))
	free := e.pod(name, "free", grace(5))

	foretold, code := reported[forecast.Report](e, "forecast", "node/"+name)
	if code != 2 || foretold.CutShort == 0 || foretold.Period != "20s" || !namesCut(foretold, protected) {
		t.Errorf("the forecast, exit code %d: %+v", code, foretold)
	}
	uid := e.node(name).UID
	e.delete(name)
	e.Until("the pod without an annotation is gone", func() bool { return e.getPod(free.Name) == nil })
	explained, code := reported[blocker.Report](e, "why", "node/"+name)
	if code != 2 || explained.Verdict != blocker.Waiting || explained.Deadline == nil ||
		explained.Deadline.Time != e.node(name).Annotations[termination.TimestampAnnotation] || !waitsFor(explained, blocker.DoNotDisrupt) {
		t.Errorf("while it waits, exit code %d: %+v", code, explained)
	}
	e.awaitGone(name)
	e.awaitPhase(uid, termination.PhaseEnded)
	explained, code = reported[blocker.Report](e, "why", "node/"+name)
	if text := e.evidence(explained); code != 0 || !waitsFor(explained, blocker.NodeEnded) || !strings.Contains(text, "cut short: pod "+
		e.Namespace+"/"+protected.Name) || strings.Contains(text, free.Name) {
		t.Errorf("after the end, exit code %d: %+v", code, explained)
	}
	e.expectRefusalNamed()
	e.expectRollback()
}

// expectRefusalNamed wants what refuses an eviction in the answer of why.
func (e *ending) expectRefusalNamed() {
	e.T.Helper()
	name := e.take("15m")
	pod := e.pod(name, "guarded")
	policy := strings.ReplaceAll(keeping, "POD", pod.Name)
	e.Must(sandbox.ApplyYAML(e.Ctx, e.Plane.RESTConfig(), []byte(policy)), "apply policy")
	e.Until("the policy works", func() bool { return e.refusesEviction(pod) })
	e.delete(name)
	var explained blocker.Report
	e.Until("the refusal is named", func() bool {
		explained, _ = reported[blocker.Report](e, "why", "node/"+name)
		for root := range blocker.Roots(explained.Blockers) {
			if root.Reason == blocker.EvictionRefused && strings.Contains(root.Holder, "keep-"+pod.Name) {
				return true
			}
		}
		return false
	})
	if explained.Verdict != blocker.Waiting {
		e.T.Errorf("the node waits until the pod is deleted: %+v", explained)
	}
	policies := e.Client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	e.Must(policies.Delete(e.Ctx, "keep-"+pod.Name, metav1.DeleteOptions{}), "delete binding")
	e.patch(name, `{"metadata":{"annotations":{"exeunt.io/termination-timestamp":"`+time.Now().UTC().Format(time.RFC3339)+`"}}}`)
	e.awaitGone(name)
}

// refusesEviction reports whether an eviction of the pod would be refused.
func (e *ending) refusesEviction(pod *v1.Pod) bool {
	return e.Client.CoreV1().Pods(pod.Namespace).EvictV1(e.Ctx, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}},
	}) != nil
}

// keeping refuses the eviction of a pod.
const keeping = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: keep-POD}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods/eviction]}]
  validations:
  - expression: object.metadata.name != 'POD'
    message: the pod stays
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: keep-POD}
spec: {policyName: keep-POD, validationActions: [Deny]}
`

// expectRollback takes the finalizer off while a leader lives: it stays off.
func (e *ending) expectRollback() {
	e.T.Helper()
	name := e.take("15m")
	text, code := e.exeunt("status")
	if code != 0 || !strings.Contains(text, "node-terminator is alive") {
		e.T.Errorf("status, exit code %d: %s", code, text)
	}
	if text, code := e.exeunt("rollback", "nodes", "--confirm"); code != 0 || !strings.Contains(text, "waiting 8s") {
		e.T.Errorf("rollback nodes, exit code %d: %s", code, text)
	}
	node := e.node(name)
	if _, has := node.Annotations[termination.InstanceAnnotation]; has || termination.Protected(node) {
		e.T.Errorf("the node is %+v", node.ObjectMeta)
	}
	select {
	case <-e.terminator.Done():
	case <-e.Ctx.Done():
		e.T.Error("the leader lives although its Lease was taken")
	}
	e.delete(name)
	if e.node(name) != nil {
		e.T.Error("the node is not gone at once")
	}
}

func namesCut(report forecast.Report, pod *v1.Pod) bool {
	return slices.ContainsFunc(report.Pods, func(one forecast.Pod) bool {
		return one.Name == pod.Name && slices.Equal(one.Misses.Against, []string{"karpenter.sh/do-not-disrupt"})
	})
}

func waitsFor(report blocker.Report, reason blocker.Reason) bool {
	for root := range blocker.Roots(report.Blockers) {
		if root.Reason == reason {
			return true
		}
	}
	return false
}

// evidence returns the evidence of all root blockers.
func (e *ending) evidence(report blocker.Report) string {
	var all []string
	for root := range blocker.Roots(report.Blockers) {
		for _, one := range root.Evidence {
			all = append(all, one.Text)
		}
	}
	return strings.Join(all, "\n")
}
