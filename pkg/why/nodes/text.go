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
	if reason == blocker.NodeUnreachable && !o.state.SilentLong {
		found.Next = cluster.Steps("the node may be starting again: wait some minutes for it", o.nodeCommand(e.Commands()))
	}
	if reason == blocker.NodeUnreachable && o.node != nil {
		found.Object.UID = string(o.node.UID)
	}
	if last := o.lastResort(e.Commands(), reason); last != "" && verdict == blocker.Stuck && !o.state.CollectorAlive { // not while somebody may act
		found.Next += "\n" + last
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
		return cluster.Steps("find out whether the machine runs, and start it or its kubelet again", o.nodeCommand(commands))
	case blocker.NodeGone:
		sentence := "make sure that the machine of the node is switched off"
		if o.state.CollectorAlive {
			sentence += ". If the pod stays for minutes, look at the log of kube-controller-manager, whose pod garbage collector deletes it"
		}
		return cluster.Steps(sentence, commands.Kubectl(namespace, "get", "pod", name, "-o", "wide"))
	default:
		return cluster.Steps("look at the events of the pod and at the log of the kubelet of node "+node, commands.Kubectl(namespace, "describe", "pod", name))
	}
}

func (o *observation) nodeCommand(commands cluster.Commands) string {
	return commands.Kubectl("", "describe", "node", o.pod.Spec.NodeName)
}

// lastResort returns how to force the end of the pod, with what is lost, or "".
func (o *observation) lastResort(commands cluster.Commands, reason blocker.Reason) string {
	switch reason {
	case blocker.NodeUnreachable:
		return cluster.LastResort("only if you saw that the machine is switched off: this detaches its disks, and a machine that runs writes to them",
			commands.Kubectl("", "taint", "node", o.pod.Spec.NodeName, "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"))
	case blocker.NodeGone:
		return cluster.LastResort("only if you saw that the machine is switched off: its processes may still write to volumes",
			commands.Kubectl(o.pod.Namespace, "delete", "pod", o.pod.Name, "--force", "--grace-period=0"))
	default:
		return ""
	}
}
