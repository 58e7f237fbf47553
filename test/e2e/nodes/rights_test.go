package nodes

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/test/cloudmock/machines"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// unexercised are rights that the terminations of the test do not need, and why.
var unexercised = map[string]string{
	"delete configmaps in exeunt-system": "a report is deleted after 72 hours",
	"patch events":                       "an event that is sent again is counted in the first one",
	"create leases in kube-system":       "the API server is asked to create a Lease only if there is none",
}

// The end of a session fails for each request that was forbidden. This test finds rights that no request needs.
func TestManifestGrantsOnlyWhatTerminationsNeed(t *testing.T) {
	e := startEnding(t, 5, "--leader-elect=true", "--instances=socket", "--instances-socket=SOCKET")
	forced := e.take("40s")
	e.seen(forced)
	e.deleteWithDeadKubelet(forced)
	e.endWithClaims(e.take("15m"), e.take("15m"))
	drained := e.take("15m")
	e.pod(drained, "web")
	e.delete(drained) // one node is left for the pods of others
	e.awaitGone(drained)
	e.Must(e.terminator.Kill(), "kill node-terminator")
	e.begin() // reads the report of the node that is left
	e.awaitGone(forced)
	log, err := os.ReadFile(e.terminator.LogFile())
	e.Must(err, "read log")
	if strings.Contains(string(log), "A right is missing") {
		t.Errorf("the program misses a right:\n%s", log)
	}
	if len(e.Events(machines.Event{Event: machines.TwoWriters})) > 0 {
		t.Error("a disk had two writers")
	}
	var unneeded []string
	for right := range granted(t) {
		if !e.needed(right) && unexercised[right] == "" {
			unneeded = append(unneeded, right)
		}
	}
	slices.Sort(unneeded)
	if len(unneeded) > 0 {
		t.Errorf("no request needs these rights:\n%s", strings.Join(unneeded, "\n"))
	}
}

// deleteWithDeadKubelet deletes a node with a pod that its budget protects, and with a disk that nobody unmounts.
func (e *ending) deleteWithDeadKubelet(name string) {
	e.T.Helper()
	e.protectByBudget(e.pod(name, "db", grace(4), e.withDisk("data")))
	e.fault(machines.Fault{Node: name, Kind: machines.KubeletDead})
	e.delete(name)
}

// protectByBudget creates a budget that no eviction of the pod fits in.
func (e *ending) protectByBudget(pod *v1.Pod) {
	e.T.Helper()
	e.apply(fmt.Sprintf(`
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: db, namespace: NAMESPACE}
spec: {minAvailable: 1, selector: {matchLabels: {app: %s}}}
`, pod.Labels["app"]))
	e.Until("the budget counts the pod", func() bool {
		budget, err := e.Client.PolicyV1().PodDisruptionBudgets(e.Namespace).Get(e.Ctx, "db", metav1.GetOptions{})
		e.Must(err, "read budget")
		return budget.Status.CurrentHealthy == 1
	})
}

// endWithClaims ends one node by its deletion, and another one by that of its claim.
func (e *ending) endWithClaims(byNode, byClaim string) {
	e.T.Helper()
	claims := dynamic.NewForConfigOrDie(e.Plane.RESTConfig()).Resource(
		schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"})
	for _, name := range []string{byNode, byClaim} {
		e.pod(name, "slow", annotated("cloudmock.exeunt.io/exit-after", "8s")) // time to write the status of the claim
		_, err := claims.Create(e.Ctx, claimOf(name), metav1.CreateOptions{})
		e.Must(err, "create claim")
		e.Until("the claim is protected", func() bool {
			claim, err := claims.Get(e.Ctx, name, metav1.GetOptions{})
			e.Must(err, "read claim")
			return termination.Protected(claim)
		})
	}
	e.Must(claims.Delete(e.Ctx, byClaim, metav1.DeleteOptions{}), "delete claim")
	e.delete(byNode)
	e.awaitGone(byNode)
	e.awaitGone(byClaim)
}

// claimOf returns a claim of node-terminator for the node.
func claimOf(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"terminationGracePeriod": "2m",
			"nodeClassRef": map[string]any{"group": termination.ClaimGroup, "kind": "Node", "name": name}},
	}}
}

// granted returns the rights of the manifest, as "verb resource" or "verb resource in namespace".
func granted(t *testing.T) map[string]bool {
	t.Helper()
	text, err := fs.ReadFile(deploy.NodeTerminator, "node-terminator/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rights := map[string]bool{}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var role rbacv1.Role
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					rights[rightOf(verb, resource, role.Namespace)] = true
				}
			}
		}
	}
	if len(rights) < 30 {
		t.Errorf("the manifest grants %v", slices.Sorted(maps.Keys(rights)))
	}
	return rights
}

func rightOf(verb, resource, namespace string) string {
	if namespace == "" {
		return verb + " " + resource
	}
	return fmt.Sprintf("%s %s in %s", verb, resource, namespace)
}

// needed reports whether a request of node-terminator needed the right. A watch that begins with all objects needs the
// right to list them where the API server does not know such a watch.
func (e *ending) needed(right string) bool {
	e.T.Helper()
	events, err := sandbox.ReadAudit(e.Plane.AuditLog)
	e.Must(err, "read audit log")
	right = strings.Replace(right, "list ", "watch ", 1)
	return slices.ContainsFunc(events, func(event sandbox.Event) bool {
		resource := event.Resource
		if event.Subresource != "" {
			resource += "/" + event.Subresource
		}
		verb := strings.Replace(event.Verb, "list", "watch", 1)
		return event.User == sandbox.NodeTerminatorAccount.Name() &&
			(right == rightOf(verb, resource, "") || right == rightOf(verb, resource, event.Namespace))
	})
}
