package situations

import (
	"encoding/json"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/termination/pod"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// nodeClaimCRD defines NodeClaims, without their schema.
const nodeClaimCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: nodeclaims.karpenter.sh}
spec:
  group: karpenter.sh
  scope: Cluster
  names: {kind: NodeClaim, listKind: NodeClaimList, plural: nodeclaims, singular: nodeclaim}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// terminations are situations of nodes that are drained before they go.
var terminations = []situation{
	{
		number: "90", name: "a node waits for a budget", alone: true,
		build: func(r *place) []string {
			r.leadTerminator(0)
			r.terminate("30m")
			r.createBudgetPod()
			return r.deleteTerminated()
		},
		verdict: blocker.Waiting, roots: []blocker.Reason{blocker.BudgetFull}, next: "get poddisruptionbudgets",
		evidence: []string{"the pod is deleted at ", "PodDisruptionBudget "},
		printed:  []string{"\n  deadline: ", "m left), 1800 s after the request of ", "; by field label exeunt.io/termination-grace-period"},
		step:     func(r *place) { r.forcePod("pod"); r.finishNode() },
	},
	{
		number: "91", name: "a node without a deadline waits for a pod that says do-not-disrupt", alone: true,
		build: func(r *place) []string {
			r.leadTerminator(0)
			r.terminate("Never")
			r.createDrainedPod(func(p *v1.Pod) { p.Annotations = map[string]string{pod.DoNotDisruptAnnotation: "true"} })
			return r.deleteTerminated()
		},
		verdict: blocker.Stuck, roots: []blocker.Reason{blocker.DoNotDisrupt}, next: "annotate pod pod karpenter.sh/do-not-disrupt-",
		step: func(r *place) { r.forcePod("pod"); r.finishNode() },
	},
	{
		number: "92", name: "a finalizer of others keeps a pod of a node that is drained", alone: true,
		build: func(r *place) []string {
			r.leadTerminator(0)
			r.terminate("30m")
			r.createDrainedPod(func(p *v1.Pod) { p.Finalizers = []string{strangerFinalizer} })
			r.endContainers("pod")
			return r.deleteTerminated()
		},
		verdict: blocker.Waiting, roots: []blocker.Reason{blocker.UnknownFinalizer},
		evidence: []string{"the node does not wait for this pod"},
		step: func(r *place) {
			_, err := r.Client.CoreV1().Pods(r.Namespace).Patch(r.Ctx, "pod", types.MergePatchType,
				[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			r.Must(err, "remove the finalizer of the pod")
			r.finishNode()
		},
	},
	{
		number: "93", name: "node-terminator is uninstalled, and a node has its finalizer", alone: true,
		build: func(r *place) []string {
			r.leadTerminator(time.Hour)
			r.terminate("30m")
			return r.deleteTerminated()
		},
		verdict: blocker.Stuck, roots: []blocker.Reason{blocker.ControllerGone}, next: "rollback nodes --confirm",
		step: func(r *place) { r.finishNode() },
	},
	{
		number: "93b", name: "nothing of node-terminator is there, and a node has its finalizer",
		build: func(r *place) []string {
			r.terminate("30m")
			return r.deleteTerminated()
		},
		verdict: blocker.Unknown, roots: []blocker.Reason{blocker.ControllerUnseen}, next: "rollback nodes --confirm",
		step: func(r *place) { r.finishNode() },
	},
	{
		number: "94", name: "a machine is not off at the deadline of its node", alone: true,
		build: func(r *place) []string {
			r.leadTerminator(0)
			r.terminate("30m")
			args := r.deleteTerminated()
			r.createReport(termination.Report{Phase: termination.PhaseStopping, Reason: "AwaitingPowerOff",
				Counts:   termination.Counts{CutShort: 1, Left: 1},
				CutShort: []termination.CutShort{{Pod: "shop/db-0", Reason: "BudgetBlocks", Budget: "shop/db", Given: 20, Missing: 10}},
				Left:     []termination.Left{{Pod: "shop/x", Reason: "DeletionRefused", Holder: "webhook guard.example.com"}}})
			return args
		},
		verdict: blocker.Stuck, roots: []blocker.Reason{blocker.MachineRuns}, next: "out-of-service=nodeshutdown:NoExecute",
		printed: []string{"pod shop/db-0 got 20 s of its grace period, 10 s are missing; BudgetBlocks shop/db",
			"left: pod shop/x, DeletionRefused webhook guard.example.com"},
		step: func(r *place) { r.finishNode() },
	},
	{
		number: "95", name: "Karpenter's claim waits for its node, and the node for a budget", alone: true,
		build: func(r *place) []string {
			r.createDeployment(r.Namespace, "karpenter", "public.ecr.aws/karpenter/controller:1.15.0", 1, 1)
			args := r.deleteKarpentersClaim()
			r.createBudgetPod()
			return args
		},
		verdict: blocker.Waiting, roots: []blocker.Reason{blocker.BudgetFull}, next: "get poddisruptionbudgets",
		printed: []string{"\n  deadline: ", "; by annotation karpenter.sh/nodeclaim-termination-timestamp"},
		step: func(r *place) {
			r.forcePod("pod")
			r.finishNode()
			r.strip(nodeClaims, "", r.Namespace)
		},
	},
	{
		number: "96", name: "the report of a node that is gone", alone: true,
		build: func(r *place) []string {
			r.terminate("30m")
			args := r.deleteTerminated()
			r.createReport(termination.Report{Phase: termination.PhaseEnded, Counts: termination.Counts{Evicted: 7}})
			r.finishNode()
			return args
		},
		verdict: blocker.Gone, roots: []blocker.Reason{blocker.NodeEnded}, evidence: []string{"pods evicted 7"},
	},
}

var nodeClaims = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"}

// leadTerminator creates the Lease of node-terminator, which was renewed the given time ago and lasts a quarter of an hour.
func (r *place) leadTerminator(ago time.Duration) {
	r.T.Helper()
	r.createLease(cluster.ControlPlane, cluster.NodeTerminatorLease, "node-terminator-1", ago, 15*time.Minute)
}

// terminate creates a node that is named like the situation's namespace, with our finalizer and the period.
func (r *place) terminate(period string) {
	r.T.Helper()
	_, err := r.Client.CoreV1().Nodes().Create(r.Ctx, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: r.Namespace,
		Labels: map[string]string{termination.Label: period}, Finalizers: []string{termination.Finalizer}}}, metav1.CreateOptions{})
	r.Must(err, "create node")
}

func (r *place) deleteTerminated() []string {
	r.T.Helper()
	r.Must(r.Client.CoreV1().Nodes().Delete(r.Ctx, r.Namespace, metav1.DeleteOptions{}), "delete node")
	return []string{"node/" + r.Namespace}
}

// createDrainedPod creates the pod "pod" on the node.
func (r *place) createDrainedPod(change func(p *v1.Pod)) {
	r.T.Helper()
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod", Labels: map[string]string{"app": "web"}},
		Spec: v1.PodSpec{NodeName: r.Namespace, Containers: []v1.Container{{Name: "c", Image: "i"}}}}
	change(p)
	_, err := r.Client.CoreV1().Pods(r.Namespace).Create(r.Ctx, p, metav1.CreateOptions{})
	r.Must(err, "create pod")
	r.setPodPhase("pod", v1.PodRunning)
}

// createBudgetPod creates a pod under a budget that allows nothing: no controller has counted its pods.
func (r *place) createBudgetPod() {
	r.T.Helper()
	_, err := r.Client.PolicyV1().PodDisruptionBudgets(r.Namespace).Create(r.Ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(1)),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
	}, metav1.CreateOptions{})
	r.Must(err, "create budget")
	r.createDrainedPod(func(*v1.Pod) {})
}

// endContainers deletes the pod, whose containers have ended.
func (r *place) endContainers(name string) {
	r.T.Helper()
	pods := r.Client.CoreV1().Pods(r.Namespace)
	r.Must(pods.Delete(r.Ctx, name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}), "delete pod")
	p, err := pods.Get(r.Ctx, name, metav1.GetOptions{})
	r.Must(err, "read pod")
	p.Status.Phase = v1.PodSucceeded
	_, err = pods.UpdateStatus(r.Ctx, p, metav1.UpdateOptions{})
	r.Must(err, "end the containers")
}

// createReport writes a report of node-terminator about the node.
func (r *place) createReport(report termination.Report) {
	r.T.Helper()
	node, err := r.Client.CoreV1().Nodes().Get(r.Ctx, r.Namespace, metav1.GetOptions{})
	r.Must(err, "read node")
	report.Node, report.UID, report.Requested = node.Name, string(node.UID), node.DeletionTimestamp.Time
	text, err := json.Marshal(report)
	r.Must(err, "encode the report")
	_, err = r.Client.CoreV1().ConfigMaps(r.Namespace).Create(r.Ctx, &v1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "node-termination-" + report.UID, Labels: map[string]string{termination.ReportLabel: node.Name}},
		Data:       map[string]string{termination.ReportKey: string(text)}}, metav1.CreateOptions{})
	r.Must(err, "create the report")
}

// deleteKarpentersClaim deletes a NodeClaim of Karpenter and its Node, as Karpenter does.
func (r *place) deleteKarpentersClaim() []string {
	r.T.Helper()
	r.Must(sandbox.ApplyYAML(r.Ctx, r.Plane.RESTConfig(), []byte(nodeClaimCRD)), "define NodeClaims")
	claims := r.dynamic().Resource(nodeClaims)
	r.Until("NodeClaims are served", func() bool {
		_, err := claims.List(r.Ctx, metav1.ListOptions{})
		return err == nil
	})
	_, err := claims.Create(r.Ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
		"metadata": map[string]any{"name": r.Namespace, "finalizers": []any{"karpenter.sh/termination"},
			"annotations": map[string]any{termination.ClaimTimestampAnnotation: time.Now().Add(30 * time.Minute).UTC().Format(time.RFC3339)}},
		"spec":   map[string]any{"terminationGracePeriod": "1h", "nodeClassRef": map[string]any{"group": "karpenter.k8s.aws"}},
		"status": map[string]any{"nodeName": r.Namespace},
	}}, metav1.CreateOptions{})
	r.Must(err, "create NodeClaim")
	r.Must(claims.Delete(r.Ctx, r.Namespace, metav1.DeleteOptions{}), "delete NodeClaim")
	r.deleteNode("karpenter.sh/termination")
	return []string{"nodeclaims.karpenter.sh/" + r.Namespace}
}
