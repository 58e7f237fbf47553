package nodes

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// blocker returns the blocker of the pod: the node if it is the node's fault, else the pod.
func (o *observation) blocker(e chain.Explorer, object *unstructured.Unstructured, reason blocker.Reason, verdict blocker.Verdict) blocker.Blocker {
	found := blocker.Blocker{
		Object: cluster.ObjectOf(object), Reason: reason, Verdict: verdict, Evidence: o.evidence,
		Holder: "kubelet of node " + o.pod.Spec.NodeName, Since: blocker.Time(o.askedAt()), Next: o.next(e.Commands(), reason),
	}
	if reason == blocker.NodeGone || reason == blocker.NodeUnreachable {
		found.Object = blocker.Object{Kind: "Node", Name: o.pod.Spec.NodeName}
		found.Since = blocker.Time(o.since)
	}
	if reason == blocker.NodeUnreachable && o.node != nil {
		found.Object.UID = string(o.node.UID)
	}
	return found
}

// next returns the next step for the user.
func (o *observation) next(commands cluster.Commands, reason blocker.Reason) string {
	namespace, name, node := o.pod.Namespace, o.pod.Name, o.pod.Spec.NodeName
	switch reason {
	case blocker.GracePeriod:
		return cluster.Steps("the grace period ends at "+o.pod.DeletionTimestamp.UTC().Format(time.RFC3339),
			commands.Kubectl(namespace, "get", "pod", name, "--watch"))
	case blocker.NodeUnreachable:
		return cluster.Steps("start the node or its kubelet again", commands.Kubectl("", "describe", "node", node)) + "\n" +
			cluster.LastResort("only if the machine is shut down: it must not write to volumes any more",
				commands.Kubectl("", "taint", "node", node, "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"))
	case blocker.NodeGone:
		return cluster.Steps("make sure that the machine of the node is switched off", commands.Kubectl(namespace, "get", "pod", name, "-o", "wide")) + "\n" +
			cluster.LastResort("only if the machine is off: its processes may still write to volumes",
				commands.Kubectl(namespace, "delete", "pod", name, "--force", "--grace-period=0"))
	default:
		return cluster.Steps("look at the events of the pod and at the log of the kubelet of node "+node, commands.Kubectl(namespace, "describe", "pod", name))
	}
}
