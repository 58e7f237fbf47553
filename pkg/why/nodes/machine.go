package nodes

import (
	"slices"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/termination/node"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// machineReasons are what node-terminator says while the machine of a node is not off, and whether somebody must help.
var machineReasons = map[node.Reason]blocker.Verdict{
	node.AwaitingPowerOff: blocker.Stuck, node.InstanceForeign: blocker.Stuck, node.InstanceShared: blocker.Stuck,
	node.InstanceUnknown: blocker.Stuck, node.DisksAttached: blocker.Stuck, node.InstanceUnreadable: blocker.Unknown,
	node.InstanceCameBack: blocker.Unknown, node.InstanceStops: blocker.Waiting, node.ProofIncomplete: blocker.Waiting,
}

// machine returns the blocker of a machine that must be off first, as the report, or else the last event says.
func (t *draining) machine(e chain.Explorer) []blocker.Blocker {
	said, text := t.said()
	verdict, concerns := machineReasons[said]
	if !concerns {
		return nil
	}
	name := t.node.GetName()
	b := blocker.Blocker{
		Object: cluster.ObjectOf(t.node), Reason: blocker.MachineRuns, Verdict: verdict, Since: t.report.Stop,
		Holder:   "the program of --instances=socket",
		Evidence: []blocker.Evidence{{Source: blocker.FromEvent, Text: text}},
		Next: cluster.Steps("look at the machine, and at the events of the node",
			e.Commands().Kubectl("", "describe", "node", name)),
	}
	if said == node.AwaitingPowerOff {
		b.Holder = "the administrator of node " + name
		b.Next = cluster.Steps("turn the machine off, and look that it is off", e.Commands().Kubectl("", "get", "node", name)) +
			"\n" + cluster.LastResort("only if you saw that the machine is switched off: this detaches its disks, and a machine "+
			"that runs writes to them", e.Commands().Kubectl("", "taint", "node", name,
			"node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"))
	}
	return []blocker.Blocker{b}
}

// said returns the last reason of node-terminator, and where it was read.
func (t *draining) said() (node.Reason, string) {
	if t.own != nil {
		return node.Reason(t.own.Reason), "the report says " + t.own.Reason
	}
	for _, event := range slices.Backward(t.events) {
		if cluster.Component(&event) == "node-terminator" && t.now.Sub(cluster.EventTime(event)) <= recent {
			return node.Reason(event.Reason), event.Reason + ": " + event.Message
		}
	}
	return "", ""
}
