package nodeterminator

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/deadline"
	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/termination/node"
)

const (
	// deadlineInvalid is the reason of the event about a label, or a period of a claim, that is not served.
	deadlineInvalid = "DeadlineInvalid"
	// providerFailed is the reason of the event about a call of the provider that failed.
	providerFailed = "ProviderFailed"
	// expiringReason is Karpenter's.
	expiringReason = "TerminationGracePeriodExpiring"
	// patience is how long a node may wait before an event says for what: most drains are shorter.
	patience = 10 * time.Second
)

// expiring returns the event of the first action.
func expiring(d deadline.Deadline) controller.Event {
	if d.None() {
		return controller.NormalEvent(string(node.DeletionRequested), "Draining; the node has no deadline")
	}
	return controller.WarningEvent(expiringReason, "All pods will be deleted and the node will be forcibly terminated at "+
		d.Annotation())
}

// tell sends an event about a state of the node.
func (c *Controller) tell(n *v1.Node, event controller.Event) { c.reporter.Report(n, event) }

// report writes the decision into events, metrics and the report.
func (c *Controller) report(n *v1.Node, t *nodeTermination, o *observation, d node.Decision) {
	if o.invalid != nil {
		c.tell(n, controller.WarningEvent(deadlineInvalid, o.invalid.Error()))
	} else if event, after := eventOf(n, o, d); event.Reason != "" && (t != nil || d.Action != node.Abandon) {
		c.reporter.ReportAfter(n, event, after)
	} else {
		c.reporter.Withdraw(n.UID)
	}
	if err := o.evidence.failure(); err != nil {
		c.reporter.ReportFailure(n, controller.WarningEvent(providerFailed, "The provider fails: "+err.Error()))
	}
	if t != nil && (t.earlier == nil || t.late) && d.Reason != node.NotServed && d.Reason != node.OwnedByOthers && d.Reason != node.ClaimsUnreadable {
		t.update(n, o, d)
		c.metrics.count(t, o)
		t.summarize()
		c.offer(t)
	}
}

// eventOf returns the event about the decision, and how long the decision must last before the event is sent. The
// reason is empty if there is none.
func eventOf(n *v1.Node, o *observation, d node.Decision) (controller.Event, time.Duration) {
	warning := func(text string) controller.Event { return controller.WarningEvent(string(d.Reason), text) }
	normal := func(text string) controller.Event { return controller.NormalEvent(string(d.Reason), text) }
	switch d.Reason {
	case node.KubeletSilent:
		return normal("The kubelet is silent and no provider ends the machine: the node is handed over at once"), 0
	case node.FinalizerStripped:
		return warning("The finalizer " + termination.Finalizer +
			" was removed: nothing more is done to the node, its machine and its pods"), 0
	case node.Draining:
		return warning("Failed to drain node: pods are waiting to be evicted or to end"), patience
	case node.AwaitingVolumeDetachment:
		return normal("Waiting until the volumes of the node are detached"), patience
	case node.Drained:
		return normal("No pod and no volume is left on the node"), 0
	case node.DeadlineReached:
		return reached(o, d), 0
	case node.MachineRuns:
		return normal("The node is drained and goes; its machine runs on"), 0
	case node.MachineOff:
		return normal("The machine is off: its pods and volumes are released"), 0
	case node.DetachNotStarted: // it begins a second after our taint
		return troubleOf(n, o, d), patience
	default:
		return troubleOf(n, o, d), 0
	}
}

// ends are the actions that end a node otherwise than by Stop.
var ends = map[node.Action]string{
	node.HandOver:       "the node goes with its pods, and the machine runs on",
	node.DeleteInstance: "deleting the machine, which cannot be stopped",
}

// reached returns the event about the end of a node that may still write.
func reached(o *observation, d node.Decision) controller.Event {
	what, named := ends[d.Action]
	if !named {
		what = "stopping the machine"
	}
	why := "Only pods and volumes that nobody waits for are left: "
	if o.state.Ended {
		why = "The deadline has come: "
	}
	if o.times.Late {
		why = fmt.Sprintf("The deadline has come, late by %v: ", o.began.Sub(o.times.GraceEnds).Round(time.Second))
	}
	return controller.WarningEvent(string(d.Reason), why+what)
}

// troubleOf returns the event about what keeps a node from ending.
func troubleOf(n *v1.Node, o *observation, d node.Decision) controller.Event {
	text := ""
	switch d.Reason {
	case node.AwaitingPowerOff:
		text = awaitingPowerOff(n.Name)
		if o.refuted {
			text = "The taint " + v1.TaintNodeOutOfService + " was set while the machine ran. Turn the machine off, remove " +
				"the taint, and set it again"
		}
	case node.InstanceUnreadable:
		text = "The provider does not tell the state of the machine" + because(o.evidence.machine.Err)
	case node.InstanceForeign:
		text = "The machine lacks the tag of this cluster: it is neither stopped nor deleted"
	case node.InstanceShared:
		text = "Another node has the same providerID: the machine is neither stopped nor deleted"
	case node.InstanceUnknown:
		text = "The provider does not know the machine, and never did: the account or the providerID may be wrong. " +
			"That proves nothing"
	case node.InstanceCameBack:
		text = "The machine was said to be off, and runs: the taint " + v1.TaintNodeOutOfService +
			" is removed, and the machine stopped again"
	case node.DisksAttached:
		text = "The provider cannot stop the machine and keep its disks, and volumes are attached"
	case node.DetachNotStarted:
		text = "The machine is off, and the attach-detach controller did not begin to detach its volumes"
	default:
		return controller.Event{}
	}
	return controller.WarningEvent(string(d.Reason), text)
}

func because(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

// awaitingPowerOff has the two commands of the administrator.
func awaitingPowerOff(name string) string {
	return fmt.Sprintf("Turn the machine off, for instance with: ipmitool -H BMC-OF-%[1]s power off. Then say so with: "+
		"kubectl taint node %[1]s %[2]s=nodeshutdown:NoExecute. Until then its pods and volumes stay", name,
		v1.TaintNodeOutOfService)
}
