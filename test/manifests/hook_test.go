package manifests

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/termination"
)

// hooksOf returns the objects that exist during an uninstall only.
func hooksOf(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(objects), func(object *unstructured.Unstructured) bool {
		return object.GetAnnotations()["helm.sh/hook"] == ""
	})
}

// A Node with the finalizer of a program that is gone can never be deleted.
func TestUninstallTakesTheFinalizerOffNodes(t *testing.T) {
	hooks := hooksOf(templated(t, terminatorOn))
	for _, hook := range hooks {
		if annotations := hook.GetAnnotations(); annotations["helm.sh/hook"] != "pre-delete" ||
			annotations["helm.sh/hook-delete-policy"] != "before-hook-creation,hook-succeeded" {
			t.Errorf("%s has the annotations %v", nameOf(hook), annotations)
		}
	}
	job := decoded[batchv1.Job](t, hooks, "Job")[0]
	container := job.Spec.Template.Spec.Containers[0]
	if want := registry + "/exeunt:" + loaded(t).Metadata.AppVersion; container.Image != want ||
		!slices.Equal(append(container.Command, container.Args...), []string{"/exeunt", "rollback", "nodes", "--confirm"}) {
		t.Errorf("the Job runs %s: %v %v, want %s", container.Image, container.Command, container.Args, want)
	}
	find(t, hooks, "ServiceAccount", job.Spec.Template.Spec.ServiceAccountName)
	if others := hooksOf(templated(t, values{})); len(others) > 0 {
		t.Errorf("without node-terminator there are %d hooks", len(others))
	}
}

// The Job of the uninstall can change nothing but Nodes, claims and the leader Lease.
func TestUninstallHasTheRightsOfTheRollbackOnly(t *testing.T) {
	hooks := hooksOf(templated(t, terminatorOn))
	want := map[string][]rbacv1.PolicyRule{
		"ClusterRole /exeunt:node-terminator-rollback": {
			{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "patch"}},
			{APIGroups: []string{"karpenter.sh"}, Resources: []string{"nodeclaims"}, Verbs: []string{"get", "list", "patch"}},
		},
		"Role kube-system/exeunt:node-terminator-rollback": {
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"},
				ResourceNames: []string{"node-terminator"}, Verbs: []string{"get", "update"}},
		},
	}
	if diff := cmp.Diff(want, rulesOf(t, hooks)); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	subject := map[string]any{"kind": "ServiceAccount", "name": "node-terminator-rollback", "namespace": "exeunt-system"}
	bindings := bindingsOf(hooks)
	for name, binding := range bindings {
		if diff := cmp.Diff([]any{subject}, binding.([]any)[1]); diff != "" {
			t.Errorf("%s has other subjects:\n%s", name, diff)
		}
	}
	if len(bindings) != 2 {
		t.Errorf("the bindings are %v", bindings)
	}
}

// labeledNodes is the number of nodes that node-terminator serves when it is uninstalled.
const labeledNodes = 10

// Helm installs and uninstalls the program beside ten nodes with its finalizer. The rights of the Job are enough for its
// command, and a leader does not keep it from its work.
func TestUninstallFreesEachLabeledNode(t *testing.T) {
	server := startServer(t)
	for _, object := range kustomized(t, "node-terminator/nodeclaim") {
		if err := server.apply(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	server.install(t, "nodeTerminator.enabled=true")
	client := kubernetes.NewForConfigOrDie(server.config)
	serveNodes(t, client)
	ended := make(chan error, 1)
	go func() { ended <- server.asKubelet(t.Context(), t, client) }()
	server.helm(t, "uninstall", "exeunt", "--timeout=1m")
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if taken, err := client.CoordinationV1().Leases("kube-system").Get(t.Context(), "node-terminator", metav1.GetOptions{}); err != nil ||
		*taken.Spec.HolderIdentity == leaderOfTest {
		t.Errorf("the leader is not stopped: %+v, %v", taken, err)
	}
	testNodesAreFree(t, client)
}

// The commands of the page uninstall what the kustomization installed, beside ten nodes with the finalizer.
func TestUninstallOfThePageFreesEachLabeledNode(t *testing.T) {
	server := startServer(t)
	client := kubernetes.NewForConfigOrDie(server.config)
	for _, object := range kustomized(t, "node-terminator") {
		server.prepareNamespace(t, object)
	}
	if _, err := server.kubectl(t, "kubectl apply -k deploy/node-terminator"); err != nil {
		t.Fatal(err)
	}
	serveNodes(t, client)
	server.runTerminatorLine(t, "exeunt rollback nodes --confirm")
	server.runTerminatorLine(t, "kubectl delete -k deploy/node-terminator")
	server.runTerminatorLine(t, "delete lease node-terminator")
	testNodesAreFree(t, client)
	for _, object := range kustomized(t, "node-terminator") {
		resource, err := server.resourceOf(object)
		if err == nil {
			_, err = resource.Get(t.Context(), object.GetName(), metav1.GetOptions{})
		}
		if !apierrors.IsNotFound(err) {
			t.Errorf("%s is left: %v", nameOf(object), err)
		}
	}
}

// serveNodes creates nodes as a leader of node-terminator leaves them while it lives, and its Lease.
func serveNodes(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	for number := range labeledNodes {
		createServedNode(t, client, fmt.Sprint("labeled-", number))
	}
	lead(t, client)
}

// testNodesAreFree checks that each node kept its label and the finalizer of another program, and can be deleted without
// ours.
func testNodesAreFree(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != labeledNodes {
		t.Fatalf("%d nodes, %v", len(nodes.Items), err)
	}
	for _, node := range nodes.Items {
		if !slices.Equal(node.Finalizers, []string{"example.com/other"}) || len(node.Annotations) > 0 ||
			node.Labels[termination.Label] == "" {
			t.Errorf("%s has the finalizers %v, annotations %v, labels %v", node.Name, node.Finalizers, node.Annotations, node.Labels)
		}
	}
}

// leaderOfTest holds the Lease of node-terminator.
const leaderOfTest = "leader_exeunt"

// createServedNode creates a Node as node-terminator leaves it while it lives.
func createServedNode(t *testing.T, client kubernetes.Interface, name string) {
	t.Helper()
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{termination.Label: "30m"},
		Annotations: map[string]string{termination.InstanceAnnotation: "mock://a"},
		Finalizers:  []string{termination.Finalizer, "example.com/other"}}}
	if _, err := client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// lead creates the Lease of a leader of node-terminator.
func lead(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "node-terminator"}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To(leaderOfTest), LeaseDurationSeconds: ptr.To[int32](10), RenewTime: ptr.To(metav1.NowMicro())}}
	if _, err := client.CoordinationV1().Leases("kube-system").Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}
