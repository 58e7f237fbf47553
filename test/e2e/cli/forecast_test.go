package cli

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/forecast"
	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/termination/pod"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// addNode creates a node with labels.
func (l *whyServer) addNode(name string, labels map[string]string, finalizers ...string) {
	l.t.Helper()
	_, err := l.client.CoreV1().Nodes().Create(l.ctx, &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Finalizers: finalizers}}, metav1.CreateOptions{})
	l.must(err, "create node")
}

// createReadyPod creates a pod of the node that is Ready, with the label app=web.
func (l *whyServer) createReadyPod(node, name string, change ...func(p *v1.Pod)) {
	l.t.Helper()
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: name, Labels: map[string]string{"app": "web"}},
		Spec: v1.PodSpec{NodeName: node, TerminationGracePeriodSeconds: ptr.To[int64](60),
			Containers: []v1.Container{{Name: "c", Image: "i"}}},
	}
	for _, f := range change {
		f(p)
	}
	created, err := l.client.CoreV1().Pods(l.namespace).Create(l.ctx, p, metav1.CreateOptions{})
	l.must(err, "create pod")
	created.Status = v1.PodStatus{Phase: v1.PodRunning, StartTime: &metav1.Time{Time: time.Now()},
		Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}}
	_, err = l.client.CoreV1().Pods(l.namespace).UpdateStatus(l.ctx, created, metav1.UpdateOptions{})
	l.must(err, "set the status of the pod")
}

// createBudget creates a budget for app=web, and waits until the disruption controller has counted the pods.
func (l *whyServer) createBudget(minAvailable, allowed int) {
	l.t.Helper()
	budgets := l.client.PolicyV1().PodDisruptionBudgets(l.namespace)
	_, err := budgets.Create(l.ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(int32(minAvailable))),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
	}, metav1.CreateOptions{})
	l.must(err, "create the budget")
	l.must(wait.PollUntilContextTimeout(l.ctx, 50*time.Millisecond, harness.Timeout, true, func(ctx context.Context) (bool, error) {
		budget, err := budgets.Get(ctx, "web", metav1.GetOptions{})
		return err == nil && budget.Status.ExpectedPods == 3 && int(budget.Status.DisruptionsAllowed) == allowed, nil
	}), "wait for the disruption controller")
}

// forecast returns the report for a node and the exit code.
func (l *whyServer) forecast(args ...string) (forecast.Report, int) {
	l.t.Helper()
	stdout, stderr, code := l.run(append([]string{"forecast", "-o", "json"}, args...)...)
	var report forecast.Report
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		l.t.Fatalf("exeunt forecast %v printed %q and %q: %v", args, stdout, stderr, err)
	}
	return report, code
}

// startDisruption starts the disruption controller of upstream.
func (l *whyServer) startDisruption() {
	l.t.Helper()
	process, err := l.plane.StartControllerManager(l.ctx, "disruption-controller", sandbox.Controller{})
	l.must(err, "start the disruption controller")
	l.t.Cleanup(func() {
		stop, cancel := context.WithTimeout(context.Background(), harness.Timeout)
		defer cancel()
		if err := process.Stop(stop); err != nil {
			l.t.Errorf("stop the disruption controller: %v", err)
		}
	})
}

func TestForecastOfNode(t *testing.T) {
	l := open(t, current)
	l.startDisruption()
	l.addNode("n1", map[string]string{termination.Label: "1h"})
	l.addNode("n2", nil)
	l.createReadyPod("n1", "a")
	l.createReadyPod("n1", "b")
	l.createReadyPod("n2", "c")
	l.createBudget(2, 1)

	report, code := l.forecast("node/n2", "--grace-period=30m")
	if one := report.Pods; code != 0 || len(one) != 1 || one[0].First != forecast.AtOnce || report.CutShort != 0 ||
		report.Period != "30m" || len(report.Incomplete) > 0 {
		t.Errorf("a pod whose budget has room: exit code %d, %+v", code, report)
	}
	report, code = l.forecast("no", "n1")
	if code != 2 || report.CutShort != 1 || report.Period != "1h" || report.Pods[0].First != forecast.AtOnce ||
		!slices.Equal(report.Pods[1].Misses.Against, []string{"PodDisruptionBudget lab/web"}) {
		t.Errorf("two pods of one budget: exit code %d, %+v", code, report)
	}
	l.expectForecastIsTrue(report)
	if report, code = l.forecast("node/n2"); code != 0 || report.Deadline != "" || len(report.Notes) != 2 {
		t.Errorf("without a deadline: exit code %d, %+v", code, report)
	}
	for node, want := range map[string]string{
		"node/n3": `there is no node "n3", did you mean n1?`, "nod/n1": `the API server serves no kind "nod", did you mean node?`,
		"node/elsewhere": `there is no node "elsewhere"`, "pod/a": "forecast looks at a node, and a is of kind Pod: name it as node/NAME",
	} {
		stdout, stderr, code := l.run("forecast", node)
		if code != 1 || stdout != "" || strings.TrimSpace(stderr) != "exeunt: "+want && strings.TrimSpace(stderr) != "error: "+want {
			t.Errorf("forecast %s: exit code %d, %q, %q; want %q", node, code, stdout, stderr, want)
		}
	}
}

// expectForecastIsTrue evicts both pods of the node: the API server allows the first, and refuses the second.
func (l *whyServer) expectForecastIsTrue(report forecast.Report) {
	l.t.Helper()
	for _, one := range report.Pods {
		err := l.client.CoreV1().Pods(one.Namespace).EvictV1(l.ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: one.Name}})
		if (err == nil) != (one.First == forecast.AtOnce) {
			l.t.Errorf("the eviction of %s: %v, and the forecast says %s", one.Name, err, one.First)
		}
	}
}

// The ClusterRole of deploy/viewer, which may write nothing, suffices.
func TestViewerMayForecast(t *testing.T) {
	l := open(t, current)
	l.must(sandbox.Apply(l.ctx, l.plane.RESTConfig(), deploy.Viewer), "apply the roles")
	l.grant("viewer", "exeunt-viewer")
	l.addNode("n1", nil)
	l.createReadyPod("n1", "a", func(p *v1.Pod) { p.Annotations = map[string]string{pod.DoNotDisruptAnnotation: "true"} })
	report, code := l.forecast("node/n1", "--grace-period=30m", "--as=viewer")
	if code != 2 || len(report.Incomplete) > 0 || len(report.Pods) != 1 || report.Pods[0].First != forecast.AtL {
		t.Errorf("exit code %d, %+v", code, report)
	}
	if _, stderr, code := l.run("forecast", "node/n1", "--as=stranger"); code != 1 || strings.Count(stderr, "\n") != 1 {
		t.Errorf("without rights: exit code %d, %q", code, stderr)
	}
}
