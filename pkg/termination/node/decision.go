package node

import "github.com/exeunt-io/exeunt/internal/enum"

// Action is the next step for a node.
type Action int

const (
	// Wait does nothing.
	Wait Action = iota
	// Protect adds our finalizer.
	Protect
	// Taint writes the first action: deadline, taint, and what keeps load balancers and autoscalers away.
	Taint
	// Stop ends the machine, and keeps its disks.
	Stop
	// Confirm asks again whether the machine is off.
	Confirm
	// Clean removes the pods of a machine that is off.
	Clean
	// MarkOutOfService adds the taint out-of-service, which detaches volumes.
	MarkOutOfService
	// Unmark removes our taint out-of-service.
	Unmark
	// DeleteInstance deletes the machine.
	DeleteInstance
	// Release removes our finalizer.
	Release
	// HandOver removes our finalizer, and leaves pods and machine to others, as without this program.
	HandOver
	// Abandon does nothing more: a user removed our finalizer.
	Abandon
)

// String returns the name of the value.
func (a Action) String() string {
	return enum.Name(a, "Wait", "Protect", "Taint", "Stop", "Confirm", "Clean", "MarkOutOfService", "Unmark",
		"DeleteInstance", "Release", "HandOver", "Abandon")
}

// Reason is the reason of a decision, and of the event that tells it.
type Reason string

const (
	// OwnedByOthers: the node is Karpenter's.
	OwnedByOthers Reason = "OwnedByOthers"
	// ClaimsUnreadable: NodeClaims cannot be read, so the node may be Karpenter's.
	ClaimsUnreadable Reason = "ClaimsUnreadable"
	// NotServed: the node has no label.
	NotServed Reason = "NotServed"
	// NotDeleted: the node lives.
	NotDeleted Reason = "NotDeleted"
	// LabelSet: the node has the label, and its deletion must be seen.
	LabelSet Reason = "LabelSet"
	// LabelRemoved: the node lost the label.
	LabelRemoved Reason = "LabelRemoved"
	// FinalizerStripped: a user removed our finalizer.
	FinalizerStripped Reason = "Abandoned"
	// DeletionRequested: the Node or its claim was deleted.
	DeletionRequested Reason = "DeletionRequested"
	// KubeletSilent: no kubelet ends the pods, and no provider ends the machine.
	KubeletSilent Reason = "KubeletSilent"
	// Draining: pods are being ended.
	Draining Reason = "FailedDraining"
	// AwaitingVolumeDetachment: volumes are attached.
	AwaitingVolumeDetachment Reason = "AwaitingVolumeDetachment"
	// Settling: a pod may have been bound to the node just before the taint.
	Settling Reason = "Settling"
	// Drained: no awaited pod and no attached volume is left.
	Drained Reason = "Drained"
	// DeadlineReached: E has come, or nothing is awaited and volumes are attached.
	DeadlineReached Reason = "DeadlineReached"
	// MachineRuns: the Node goes, and the machine runs on.
	MachineRuns Reason = "MachineRuns"
	// InstanceUnreadable: the provider does not answer.
	InstanceUnreadable Reason = "InstanceUnreadable"
	// InstanceStops: the provider is stopping or deleting the machine.
	InstanceStops Reason = "InstanceStops"
	// InstanceForeign: the machine lacks the tag of this cluster.
	InstanceForeign Reason = "InstanceForeign"
	// InstanceShared: another Node has the same providerID.
	InstanceShared Reason = "InstanceShared"
	// InstanceUnknown: the provider never knew the machine.
	InstanceUnknown Reason = "InstanceUnknown"
	// InstanceCameBack: the kubelet renewed its Lease after the proof.
	InstanceCameBack Reason = "InstanceCameBack"
	// ProofIncomplete: a second answer, or the silence of the kubelet, is missing.
	ProofIncomplete Reason = "ProofIncomplete"
	// AwaitingPowerOff: an administrator must turn the machine off.
	AwaitingPowerOff Reason = "AwaitingPowerOff"
	// DisksAttached: the provider can only delete the machine, which may delete attached disks.
	DisksAttached Reason = "DisksAttached"
	// DetachNotStarted: the attach-detach controller did nothing.
	DetachNotStarted Reason = "DetachNotStarted"
	// MachineOff: the machine is proven to be off.
	MachineOff Reason = "MachineOff"
)

// Decision is an action and its reason.
type Decision struct {
	Action Action
	Reason Reason
}

// String returns the action and the reason.
func (d Decision) String() string { return d.Action.String() + ", " + string(d.Reason) }
