package nodes

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/podend"
)

// explainPod returns what a deleted pod waits for: its kubelet, then its finalizers.
func explainPod(ctx context.Context, e chain.Explorer, object *unstructured.Unstructured) []blocker.Blocker {
	var found []blocker.Blocker
	var pod corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &pod); err != nil {
		e.Reader().Note("could not read pod %s/%s: %v", object.GetNamespace(), object.GetName(), err)
	} else {
		p := observePod(ctx, e, &pod)
		if reason, verdict, keeps := podend.Decide(p.state); keeps {
			found = append(found, p.blocker(e, object, reason, verdict))
		}
	}
	return append(found, chain.FinalizerBlockers(ctx, e, object)...)
}

// observation is the observed state of a pod that was deleted.
type observation struct {
	pod   *corev1.Pod
	node  *corev1.Node // nil if it was not seen, or does not exist
	state podend.State

	evidence []blocker.Evidence
	// since is since when the node is not ready, lastSign when its kubelet last reported.
	since, lastSign time.Time
}

// observePod reads the node of the pod, its Lease and the events of the pod.
func observePod(ctx context.Context, e chain.Explorer, pod *corev1.Pod) *observation {
	o := &observation{pod: pod}
	o.state.KubeletFinished = kubeletHasFinished(pod)
	if o.state.KubeletFinished {
		return o
	}
	now := e.Reader().Now()
	o.state.WithinGrace = now.Before(pod.DeletionTimestamp.Time)
	o.state.JustEnded = !o.state.WithinGrace && now.Before(pod.DeletionTimestamp.Add(collectorTime))
	o.observeNode(ctx, e)
	o.observeLease(ctx, e)
	o.state.SilentLong = !o.lastSign.IsZero() && now.Sub(o.lastSign) > rebootTime
	o.observeEvents(ctx, e)
	o.observeDrivers(ctx, e)
	if o.state.Node == podend.NodeAbsent {
		o.observeCollector(ctx, e)
	}
	return o
}

// kubeletHasFinished reports whether no kubelet keeps the pod: it was never scheduled, or
// its kubelet has deleted it with a grace period of 0.
func kubeletHasFinished(pod *corev1.Pod) bool {
	grace := pod.DeletionGracePeriodSeconds
	return pod.Spec.NodeName == "" || grace == nil || *grace == 0
}

func (o *observation) add(source blocker.Source, format string, values ...any) {
	o.evidence = append(o.evidence, blocker.Evidence{Source: source, Text: fmt.Sprintf(format, values...)})
}

// rebootTime is how long a machine may be silent while it starts again. Kubernetes evicts pods of a
// node after as long.
const rebootTime = 5 * time.Minute

// signAt notes that the kubelet reported at that time, or that its node changed.
func (o *observation) signAt(at time.Time) {
	if at.After(o.lastSign) {
		o.lastSign = at
	}
}

func (o *observation) observeNode(ctx context.Context, e chain.Explorer) {
	name := o.pod.Spec.NodeName
	node, presence := cluster.Get(ctx, e.Reader(), cluster.Nodes, "", name)
	switch presence {
	case cluster.Unseen:
		o.state.Node = podend.NodeUnseen
	case cluster.Absent:
		o.state.Node = podend.NodeAbsent
		o.add(blocker.FromField, "spec.nodeName of the pod is %s, and there is no such node", name)
	case cluster.Present:
		o.node = node
		o.state.Node = podend.NodeReady
		ready := readyCondition(node)
		if ready.Status != corev1.ConditionTrue {
			o.state.Node, o.since = podend.NodeNotReady, ready.LastTransitionTime.Time
		}
		o.signAt(ready.LastHeartbeatTime.Time)
		o.signAt(ready.LastTransitionTime.Time)
		o.add(blocker.FromCondition, "%s",
			strings.TrimSuffix(fmt.Sprintf("condition Ready of node %s is %s since %s: %s", name, ready.Status,
				blocker.Time(ready.LastTransitionTime.Time), ready.Message), ": "))
	}
}

// readyCondition returns the condition Ready, Unknown if the node has none.
func readyCondition(node *corev1.Node) corev1.NodeCondition {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition
		}
	}
	return corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown,
		Message: "the kubelet has never reported"}
}

func (o *observation) observeLease(ctx context.Context, e chain.Explorer) {
	lease, presence := cluster.Get(ctx, e.Reader(), cluster.Leases, corev1.NamespaceNodeLease, o.pod.Spec.NodeName)
	switch presence {
	case cluster.Unseen:
		o.state.Lease = blocker.LeaseUnseen
	case cluster.Absent:
		o.state.Lease = blocker.LeaseAbsent
	case cluster.Present:
		o.state.Lease = blocker.JudgeLease(lease, cluster.GotAt(ctx, e.Reader(), cluster.Leases, corev1.NamespaceNodeLease,
			o.pod.Spec.NodeName))
		renewed := "never"
		if lease.Spec.RenewTime != nil {
			renewed = blocker.Time(lease.Spec.RenewTime.Time)
			o.signAt(lease.Spec.RenewTime.Time)
		}
		o.add(blocker.FromLease, "Lease %s/%s was renewed by the kubelet: %s", lease.Namespace, lease.Name, renewed)
	}
}

// collectorTime is how long the pod garbage collector takes at most after the end of a node: it
// waits for 40 s, runs every 20 s, and may start anew with another leader.
const collectorTime = 2 * time.Minute

// observeCollector finds out whether the pod garbage collector of kube-controller-manager
// lives: it deletes a pod whose node is gone about a minute after the node.
func (o *observation) observeCollector(ctx context.Context, e chain.Explorer) {
	lease, presence := cluster.Get(ctx, e.Reader(), cluster.Leases, "kube-system", "kube-controller-manager")
	o.state.CollectorUnseen = presence == cluster.Unseen
	if presence != cluster.Present {
		return
	}
	at := cluster.GotAt(ctx, e.Reader(), cluster.Leases, "kube-system", "kube-controller-manager")
	switch blocker.JudgeLease(lease, at) {
	case blocker.LeaseHeld:
		o.state.CollectorAlive = true
		o.add(blocker.FromLease, "kube-controller-manager is alive: its pod garbage collector deletes a pod about a minute after the node")
	case blocker.LeaseExpired: // between two leaders
		o.state.CollectorUnseen = true
	case blocker.LeaseUnseen, blocker.LeaseAbsent, blocker.LeaseExpiredTwice:
	}
}

// blocker returns the blocker of the pod: the node if it is the node's fault, else the pod.
func (o *observation) blocker(e chain.Explorer, object *unstructured.Unstructured, reason blocker.Reason,
	verdict blocker.Verdict) blocker.Blocker {
	found := blocker.Blocker{
		Object: cluster.ObjectOf(object), Reason: reason, Verdict: verdict, Evidence: o.evidence,
		Holder: "kubelet of node " + o.pod.Spec.NodeName, Since: blocker.Time(deadline.Of(o.pod).Requested()),
		Next: o.next(e.Commands(), reason),
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
	if last := o.lastResort(e.Commands(), reason); last != "" && verdict == blocker.Stuck &&
		!o.state.CollectorAlive { // not while somebody may act
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
		return cluster.Steps("look at the events of the pod and at the log of the kubelet of node "+node,
			commands.Kubectl(namespace, "describe", "pod", name))
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
			commands.Kubectl("", "taint", "node", o.pod.Spec.NodeName,
				"node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"))
	case blocker.NodeGone:
		return cluster.LastResort("only if you saw that the machine is switched off: its processes may still write to volumes",
			commands.Kubectl(o.pod.Namespace, "delete", "pod", o.pod.Name, "--force", "--grace-period=0"))
	default:
		return ""
	}
}
