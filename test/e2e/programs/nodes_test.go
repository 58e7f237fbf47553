package programs

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/test/cloudmock/machines"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// The exit status says whether ours keeps its promises. This test runs alone, for they are about seconds.
func TestNodeStoryAgainstUpstream(t *testing.T) {
	temporary := shortTemp(t)
	command := demo(t, temporary, "--against=upstream", "--story=node", "-o", "json")
	var progress strings.Builder
	command.Stderr = &progress
	output, err := command.Output()
	if err != nil {
		t.Fatalf("the demo failed: %v\n%s%s", err, progress.String(), output)
	}
	values := map[string]string{}
	for _, result := range resultsOf(t, output) {
		for _, measure := range result.Measures {
			values[result.Pair+": "+measure.Name] = measure.Value
		}
	}
	for name, want := range map[string]string{
		"ours: pods forced at the last moment for their grace":        "3",
		"upstream: pods ended early against budget or do-not-disrupt": "1",
		"upstream: seconds past the deadline until all pods are off":  "runs on",
		"upstream: seconds until the disk is attached elsewhere":      "over 20",
	} {
		if values[name] != want {
			t.Errorf("%s: %q, want %s; all: %v", name, values[name], want, values)
		}
	}
	for _, reason := range []string{"BudgetBlocks", "DoNotDisrupt"} {
		if !strings.Contains(string(output), reason) {
			t.Errorf("no report names %s: %s", reason, output)
		}
	}
	expectEmpty(t, temporary)
}

func TestSandboxEndsASimulatedNode(t *testing.T) {
	t.Parallel()
	r := startSandbox(t, "--cloud-nodes=3")
	config, err := sandbox.LoadConfig(r.kubeconfig)
	r.must(err)
	client, err := kubernetes.NewForConfig(config)
	r.must(err)
	s := &harness.Session{T: t, Ctx: t.Context(), Cluster: &harness.Cluster{}}
	s.Until("all pods run", func() bool {
		pods, err := client.CoreV1().Pods("shop").List(t.Context(), metav1.ListOptions{})
		r.must(err)
		running := 0
		for _, pod := range pods.Items {
			if pod.Status.Phase == v1.PodRunning {
				running++
			}
		}
		return running == 6
	})
	nodes := client.CoreV1().Nodes()
	_, err = nodes.Patch(t.Context(), "mock-0", types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"labels":{"%s":"10s"}}}`, termination.Label), metav1.PatchOptions{})
	r.must(err)
	s.Until("the node is served", func() bool {
		node, err := nodes.Get(t.Context(), "mock-0", metav1.GetOptions{})
		r.must(err)
		return termination.Protected(node)
	})
	r.must(nodes.Delete(t.Context(), "mock-0", metav1.DeleteOptions{}))
	log := between(r.said, "What happens to pods, disks and machines is in ", "\n")
	s.Until("the machine is off", func() bool {
		events, err := machines.ReadLog(log)
		r.must(err)
		for _, event := range events {
			if event.Node == "mock-0" && event.Event == machines.PowerOff {
				return true
			}
		}
		return false
	})
	r.must(r.command.Process.Signal(syscall.SIGINT))
	if code, said := r.wait(); code != 0 || strings.Contains(said, "sandbox:") {
		t.Errorf("exit code %d, said %q", code, said)
	}
}

// between returns the text between two others.
func between(text, before, after string) string {
	_, text, _ = strings.Cut(text, before)
	text, _, _ = strings.Cut(text, after)
	return text
}

func TestSandboxHasLoadBalancers(t *testing.T) {
	t.Parallel()
	r := startSandbox(t, "--cloud")
	config, err := sandbox.LoadConfig(r.kubeconfig)
	r.must(err)
	client, err := kubernetes.NewForConfig(config)
	r.must(err)
	services := client.CoreV1().Services(metav1.NamespaceDefault)
	_, err = services.Create(t.Context(), &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       v1.ServiceSpec{Type: v1.ServiceTypeLoadBalancer, Ports: []v1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	r.must(err)
	state := between(r.said, "\ncat ", " ")
	s := &harness.Session{T: t, Ctx: t.Context(), Cluster: &harness.Cluster{}}
	s.Until("the Service has its load balancer", func() bool {
		lines, err := os.ReadFile(state)
		r.must(err)
		return strings.Contains(string(lines), `"service":"default/web"`)
	})
	r.must(services.Delete(t.Context(), "web", metav1.DeleteOptions{}))
	s.Until("the load balancer is gone", func() bool {
		lines, err := os.ReadFile(state)
		r.must(err)
		return len(lines) == 0
	})
	r.must(r.command.Process.Signal(syscall.SIGINT))
	if code, said := r.wait(); code != 0 || strings.Contains(said, "sandbox:") {
		t.Errorf("exit code %d, said %q", code, said)
	}
}
