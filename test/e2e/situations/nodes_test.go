package situations

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/blocker"
)

// nodePods are the situations of pods that their kubelet has to stop.
var nodePods = []situation{
	{
		number: "36", name: "a pod ends within its grace period",
		build: func(r *place) []string {
			r.createNode(r.Namespace, v1.ConditionTrue, 0)
			return r.deletePodOnNode(r.Namespace, 600)
		},
		verdict: blocker.Waiting, roots: []blocker.Reason{blocker.GracePeriod}, next: "get pod pod --watch", step: forcePod,
	},
	{
		number: "37", name: "the kubelet cannot unmount a volume",
		build: func(r *place) []string {
			r.createNode(r.Namespace, v1.ConditionTrue, 0)
			args := r.deletePodOnNode(r.Namespace, 1)
			r.createPodWarning("FailedUnMount",
				"Unmounting volume failed: driver hostpath.csi.example not found in the list of registered CSI drivers")
			return args
		},
		verdict: blocker.Stuck, roots: []blocker.Reason{blocker.KubeletStopping}, next: "describe pod pod", step: forcePod,
	},
	{
		number: "38", name: "the node is not ready for an hour",
		build: func(r *place) []string {
			r.createNode(r.Namespace, v1.ConditionUnknown, time.Hour)
			return r.deletePodOnNode(r.Namespace, 1)
		},
		verdict: blocker.Stuck, roots: []blocker.Reason{blocker.NodeUnreachable}, next: "out-of-service", step: forcePod,
	},
	{
		number: "39", name: "the node object is gone",
		build:   func(r *place) []string { return r.deletePodOnNode(r.Namespace, 1) },
		verdict: blocker.Stuck, roots: []blocker.Reason{blocker.NodeGone}, next: "--force", step: forcePod,
	},
	{
		number: "n1", name: "a node was not ready, and its kubelet reports again",
		build: func(r *place) []string {
			r.createNode(r.Namespace, v1.ConditionUnknown, 0)
			return r.deletePodOnNode(r.Namespace, 1)
		},
		verdict: blocker.Unknown, roots: []blocker.Reason{blocker.NodeUnreachable}, absent: "out-of-service",
	},
	{
		number: "38b", name: "the last heartbeat of the node is 90 s old",
		build: func(r *place) []string {
			r.createNode(r.Namespace, v1.ConditionUnknown, 90*time.Second)
			return r.deletePodOnNode(r.Namespace, 1)
		},
		verdict: blocker.Unknown, roots: []blocker.Reason{blocker.NodeUnreachable}, next: "may be starting again",
		absent: "out-of-service", step: forcePod,
	},
	{
		number: "39b", name: "the node is gone within the grace period, the collector is alive", alone: true,
		build: func(r *place) []string {
			r.createLease("kube-system", "kube-controller-manager", "node-1_1234", 0, time.Hour)
			return r.deletePodOnNode(r.Namespace, 600)
		},
		verdict: blocker.Waiting, roots: []blocker.Reason{blocker.NodeGone}, next: "get pod pod", absent: "--force",
		step: forcePod,
	},
	{
		number: "39c", name: "the node is gone, the grace period has just ended, the collector is alive", alone: true,
		build: func(r *place) []string {
			r.createLease("kube-system", "kube-controller-manager", "node-1_1234", 0, time.Hour)
			return r.deletePodOnNode(r.Namespace, 1)
		},
		verdict: blocker.Waiting, roots: []blocker.Reason{blocker.NodeGone}, next: "get pod pod", absent: "--force",
		step: forcePod,
	},
	{
		number: "n2", name: "the kubelet is slow and reports no error",
		build: func(r *place) []string {
			r.createNode(r.Namespace, v1.ConditionTrue, 0)
			return r.deletePodOnNode(r.Namespace, 1)
		},
		verdict: blocker.Waiting, roots: []blocker.Reason{blocker.KubeletStopping},
	},
}

// forcePod deletes the pod "pod" with a grace period of 0, as the kubelet does in the end.
func forcePod(r *place) { r.forcePod("pod") }

// createNode creates a node whose kubelet renewed its Lease the given time ago.
func (r *place) createNode(name string, ready v1.ConditionStatus, silent time.Duration) {
	r.T.Helper()
	node, err := r.Client.CoreV1().Nodes().Create(r.Ctx, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}},
		metav1.CreateOptions{})
	r.Must(err, "create node")
	node.Status.Conditions = []v1.NodeCondition{{
		Type: v1.NodeReady, Status: ready, Reason: "NodeStatusUnknown",
		LastTransitionTime: metav1.NewTime(time.Now().Add(-silent)),
	}}
	_, err = r.Client.CoreV1().Nodes().UpdateStatus(r.Ctx, node, metav1.UpdateOptions{})
	r.Must(err, "set status of node")
	_, err = r.Client.CoreV1().Namespaces().Get(r.Ctx, v1.NamespaceNodeLease, metav1.GetOptions{})
	r.Must(err, "get namespace of node Leases")
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: v1.NamespaceNodeLease},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To(name), LeaseDurationSeconds: ptr.To[int32](40),
			RenewTime: ptr.To(metav1.NewMicroTime(time.Now().Add(-silent))),
		},
	}
	_, err = r.Client.CoordinationV1().Leases(v1.NamespaceNodeLease).Create(r.Ctx, lease, metav1.CreateOptions{})
	r.Must(err, "create Lease of node")
	_, err = r.Client.StorageV1().CSINodes().Create(r.Ctx, &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}},
		metav1.CreateOptions{})
	r.Must(err, "create CSINode")
}

// deletePodOnNode creates the pod "pod" on the node, deletes it, and waits until a grace
// period of a second has passed.
func (r *place) deletePodOnNode(node string, grace int64) []string {
	r.T.Helper()
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "pod"},
		Spec: v1.PodSpec{NodeName: node, Containers: []v1.Container{{Name: "c", Image: "i"}},
			TerminationGracePeriodSeconds: ptr.To(grace)},
	}
	_, err := r.Client.CoreV1().Pods(r.Namespace).Create(r.Ctx, pod, metav1.CreateOptions{})
	r.Must(err, "create pod")
	r.Must(r.Client.CoreV1().Pods(r.Namespace).Delete(r.Ctx, "pod", metav1.DeleteOptions{}), "delete pod")
	r.Until("the grace period has ended", func() bool {
		pod, err := r.Client.CoreV1().Pods(r.Namespace).Get(r.Ctx, "pod", metav1.GetOptions{})
		return err == nil && (grace > 60 || time.Now().After(pod.DeletionTimestamp.Add(time.Second)))
	})
	return []string{"pod/pod"}
}

// createPodWarning creates an event of the kubelet for the pod "pod".
func (r *place) createPodWarning(reason, message string) {
	r.T.Helper()
	pod, err := r.Client.CoreV1().Pods(r.Namespace).Get(r.Ctx, "pod", metav1.GetOptions{})
	r.Must(err, "get pod")
	event := &v1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: "pod-", Namespace: r.Namespace},
		InvolvedObject: v1.ObjectReference{Kind: "Pod", Namespace: r.Namespace, Name: "pod", UID: pod.UID},
		Type:           v1.EventTypeWarning, Reason: reason, Message: message, Count: 7,
		FirstTimestamp: metav1.Now(), LastTimestamp: metav1.Now(),
		Source: v1.EventSource{Component: "kubelet", Host: r.Namespace},
	}
	_, err = r.Client.CoreV1().Events(r.Namespace).Create(r.Ctx, event, metav1.CreateOptions{})
	r.Must(err, "create event")
}

// forcePod deletes the pod with a grace period of 0, as the kubelet does in the end.
func (r *place) forcePod(name string) {
	r.T.Helper()
	r.Must(r.Client.CoreV1().Pods(r.Namespace).Delete(r.Ctx, name,
		metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}), "delete pod by force")
}
