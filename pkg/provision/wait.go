package provision

import (
	"github.com/exeunt-io/exeunt/internal/enum"
)

// Cause is what kept a pass from providing the claim's volume.
type Cause int

const (
	// NoCause: nothing failed.
	NoCause Cause = iota
	// CallFailed: CreateVolume failed.
	CallFailed
	// CallInfeasible: CreateVolume failed, and the same request gets the same error.
	CallInfeasible
	// CallIgnored: the provisioner leaves the claim to another one.
	CallIgnored
	// VolumeDiscarded: the created volume could not serve the claim and was deleted.
	VolumeDiscarded
	// RequestFailed: the request cannot be built.
	RequestFailed
	// OtherProvisioner: another provisioner serves the claim; an event says so.
	OtherProvisioner
	// OtherProvisionerUnnamed: another provisioner may serve the claim; nothing is said.
	OtherProvisionerUnnamed
)

// String returns the name of the value.
func (c Cause) String() string {
	return enum.Name(c, "NoCause", "CallFailed", "CallInfeasible", "CallIgnored", "VolumeDiscarded", "RequestFailed",
		"OtherProvisioner", "OtherProvisionerUnnamed")
}

// Retry is when the claim is reconciled again.
type Retry int

const (
	// OnEvent: once an object changes.
	OnEvent Retry = iota
	// WithBackoff: after a time that grows with each try.
	WithBackoff
	// Soon: after the shortest backoff.
	Soon
	// Late: after the longest backoff.
	Late
	// OnceFailureCounts: when a repeated failure counts.
	OnceFailureCounts
	// OnceRecordIsMissed: when the PersistentVolume that this process wrote counts as gone.
	OnceRecordIsMissed
	// OnceWriteEnds: when a write of the PersistentVolume without an answer cannot take effect any more.
	OnceWriteEnds
)

// String returns the name of the value.
func (r Retry) String() string {
	return enum.Name(r, "OnEvent", "WithBackoff", "Soon", "Late", "OnceFailureCounts", "OnceRecordIsMissed",
		"OnceWriteEnds")
}

// Report is the event of a claim that waits.
type Report int

const (
	// NoReport: none, or none but what was reported before.
	NoReport Report = iota
	// ReportFailure: the cause.
	ReportFailure
	// ReportNameConflict: another volume has the name of the claim's volume.
	ReportNameConflict
	// ReportUnresolved: whether there is a volume is unknown, and no claim wants it.
	ReportUnresolved
	// ReportLeftAlone: a volume of a deleted claim is left alone.
	ReportLeftAlone
	// ReportOtherProvisioner: another provisioner serves the claim.
	ReportOtherProvisioner
)

// String returns the name of the value.
func (r Report) String() string {
	return enum.Name(r, "NoReport", "ReportFailure", "ReportNameConflict", "ReportUnresolved", "ReportLeftAlone",
		"ReportOtherProvisioner")
}

// Pass is what a pass over a claim has shown beside its last [State].
type Pass struct {
	Cause Cause
	// Unseen: this process wrote the PersistentVolume, and the cache does not have it yet.
	Unseen bool
	// Server is who serves the claim.
	Server Server
}

// Waiting is how a claim waits.
type Waiting struct {
	Retry  Retry
	Report Report
	// Count: the pass counts as a failed one. A failed call was counted before.
	Count bool
	// Forget: nothing is left to be done, nothing needs to be remembered.
	Forget bool
}

// WaitFor returns how the claim waits after the decision to wait for the reason. It is
// total and pure.
func WaitFor(s State, reason Reason, p Pass) Waiting {
	switch {
	case reason == RequestRefused:
		return waitForRequest(s, p.Cause)
	case reason == NameInUse:
		return Waiting{Retry: WithBackoff, Report: ReportNameConflict, Count: true}
	case reason == VolumeMayBeKept:
		return Waiting{Retry: Late, Report: ReportLeftAlone}
	case reason == WriteUnanswered:
		return Waiting{Retry: OnceWriteEnds}
	case reason == LeaseEnding:
		return Waiting{Retry: WithBackoff}
	case reason == NotWanted: // a change of the claim or its class wakes it
		s.Called = false
	case !isDone(s) && s.failed(p.Cause):
		return waitAfterFailure(s, p.Cause)
	}
	return waitForEvent(s, p)
}

// waitForEvent returns how a claim waits that nothing has failed for. A call without a
// result is repeated.
func waitForEvent(s State, p Pass) Waiting {
	isRecorded := s.Record.IsOfClaim()
	switch {
	case isDone(s), s.Want == Unserved && p.Server == OtherProcess && !s.Stored:
		return Waiting{Forget: true}
	case isRecorded && p.Unseen:
		return Waiting{Retry: OnceRecordIsMissed}
	case s.Called && !isRecorded:
		return Waiting{Retry: Soon}
	}
	return Waiting{}
}

// failed reports whether the cause keeps the claim from its volume. A volume that was
// discarded says nothing to a claim that wants another one, or none.
func (s State) failed(cause Cause) bool {
	switch cause {
	case CallFailed, CallInfeasible, CallIgnored:
		return true
	case VolumeDiscarded:
		return s.Want == Wanted
	case NoCause, RequestFailed, OtherProvisioner, OtherProvisionerUnnamed:
	}
	return false
}

// isDone reports whether nothing is left to be done for the claim, ever.
func isDone(s State) bool {
	return (s.Want == Unwanted || s.Want == BoundOrLost) && s.Entry == NoEntry &&
		(s.Record.IsOfClaim() || s.isSettled())
}

// isSettled reports whether no call is open, and no volume is unrecorded.
func (s State) isSettled() bool {
	return s.Creation == NotRequested || s.Creation == Failed
}

// waitForRequest returns how a claim waits whose request cannot be built.
func waitForRequest(s State, cause Cause) Waiting {
	switch {
	case s.Want == Unwanted:
		return Waiting{Retry: WithBackoff, Report: ReportUnresolved, Count: true}
	case cause == OtherProvisionerUnnamed:
		return Waiting{Retry: Late} // v10 counts no claim that ShouldProvision refuses
	case cause == OtherProvisioner:
		return Waiting{Retry: OnEvent, Report: ReportOtherProvisioner, Count: true}
	}
	return Waiting{Retry: WithBackoff, Report: ReportFailure, Count: true}
}

// waitAfterFailure returns how a claim waits for its next call. The failure of a call was
// reported with the call, unless no claim wants the volume.
func waitAfterFailure(s State, cause Cause) Waiting {
	switch {
	case s.Creation == FailedOnce && s.Want == Unwanted:
		return Waiting{Retry: OnceFailureCounts}
	case s.Want == Unwanted:
		return Waiting{Retry: WithBackoff, Report: ReportUnresolved}
	case cause == VolumeDiscarded:
		return Waiting{Retry: WithBackoff, Report: ReportFailure, Count: true}
	case (cause == CallIgnored || cause == CallInfeasible) && s.isSettled():
		return Waiting{Retry: Late}
	}
	return Waiting{Retry: WithBackoff}
}
