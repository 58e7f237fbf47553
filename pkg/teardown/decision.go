package teardown

import "github.com/exeunt-io/exeunt/internal/enum"

// Action is the next step.
type Action int

const (
	// Wait does nothing.
	Wait Action = iota
	// End ends the run: Alive is gone, or the cluster is another one.
	End
	// Confirm reads kube-system and Alive live, and before the start the CRD of Alive: the next decision has what they say.
	Confirm
	// WriteFreeze writes the policy that keeps new disks and load balancers away.
	WriteFreeze
	// Unfreeze removes it: the cluster stays.
	Unfreeze
	// SavePlan writes what would be deleted and kept.
	SavePlan
	// Keep sets the label and the policy Retain on kept volumes.
	Keep
	// Start sets the condition Started: participants begin.
	Start
	// Delete deletes a batch of objects.
	Delete
	// Recheck reads all lists again.
	Recheck
	// Record writes the phase into the record: Complete, or TearingDown if something was found after that.
	Record
	// Release removes our finalizer.
	Release
)

// String returns the name of the value.
func (a Action) String() string {
	return enum.Name(a, "Wait", "End", "Confirm", "WriteFreeze", "Unfreeze", "SavePlan", "Keep", "Start", "Delete",
		"Recheck", "Record", "Release")
}

// Phase is the phase in the status of Alive, "" if nothing is to be written.
type Phase string

// The phases of Alive.
const (
	NoPhase     Phase = ""
	Protected   Phase = "Protected"
	Armed       Phase = "Armed"
	Preparing   Phase = "Preparing"
	TearingDown Phase = "TearingDown"
	Stopped     Phase = "Stopped"
	Complete    Phase = "Complete"
)

// Reason is the reason of a decision and of the phase.
type Reason string

const (
	// OtherCluster: the address leads to another cluster.
	OtherCluster Reason = "OtherCluster"
	// Unreadable: Alive or kube-system could not be read.
	Unreadable Reason = "Unreadable"
	// Completed: everything to delete is gone.
	Completed Reason = "Completed"
	// NotCompleted: Alive is gone, and the record does not say Complete.
	NotCompleted Reason = "NotCompleted"
	// IsProtected: spec.protected is true.
	IsProtected Reason = "Protected"
	// NotConfirmed: no valid permission.
	NotConfirmed Reason = "NotConfirmed"
	// Expired: the permission ended.
	Expired Reason = "Expired"
	// NotReady: the condition Ready says what refuses.
	NotReady Reason = "NotReady"
	// Checking: it is not known yet whether something refuses.
	Checking Reason = "Checking"
	// AwaitingDeletion: it is armed, and nobody deleted it yet.
	AwaitingDeletion Reason = "AwaitingDeletion"
	// DefinitionDeleted: the CRD of Alive is being deleted.
	DefinitionDeleted Reason = "DefinitionDeleted"
	// FinalizerStripped: somebody removed our finalizer.
	FinalizerStripped Reason = "FinalizerStripped"
	// Paused: the cluster was restored from a backup; a person has to confirm again.
	Paused Reason = "Paused"
	// NotLeading: another runner leads, or the Lease may end before a write.
	NotLeading Reason = "NotLeading"
	// FreezeMissing: the policy is to be written.
	FreezeMissing Reason = "FreezeMissing"
	// FreezePending: the policy is not in force yet.
	FreezePending Reason = "FreezePending"
	// Planning: the plan is to be saved.
	Planning Reason = "Planning"
	// Keeping: kept volumes are to be marked.
	Keeping Reason = "Keeping"
	// Starting: all is prepared.
	Starting Reason = "Starting"
	// Deleting: objects are deleted.
	Deleting Reason = "Deleting"
	// Remaining: what was deleted is awaited.
	Remaining Reason = "Remaining"
	// Settling: nothing is left, and the lists are read again.
	Settling Reason = "Settling"
)

// Decision is a phase with the next step and the reason of both.
type Decision struct {
	Phase  Phase
	Action Action
	Reason Reason
}
