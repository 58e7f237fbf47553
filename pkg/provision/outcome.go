package provision

import (
	"google.golang.org/grpc/codes"

	"github.com/exeunt-io/exeunt/internal/enum"
)

// Outcome is what is known of the volume after an error of CreateVolume.
type Outcome int

const (
	// Unanswered: the driver may still be creating the volume, or the error is not the
	// driver's.
	Unanswered Outcome = iota
	// Uncertain: the driver failed; what it had begun may be left behind.
	Uncertain
	// Mismatch: there is a volume, created by another request.
	Mismatch
	// SourceMissing: there is no volume if this was the first call. Later, the source
	// may have gone in the meantime.
	SourceMissing
	// NoVolume: there is no volume, and the driver creates none any more.
	NoVolume
	// Unchanged: the request did not reach the storage system, or the driver could not look there: it is
	// throttled, or lacks rights. What was known before stays known; after a first call there is no volume.
	Unchanged
)

// String returns the name of the value.
func (o Outcome) String() string {
	return enum.Name(o, "Unanswered", "Uncertain", "Mismatch", "SourceMissing", "NoVolume", "Unchanged")
}

// OutcomeOf returns the outcome of an error code (CSI specification, "Error
// Scheme"). Internal and its like are Uncertain: drivers use them for whatever goes
// wrong in the middle.
func OutcomeOf(code codes.Code) Outcome {
	switch code {
	case codes.InvalidArgument, codes.OutOfRange, codes.FailedPrecondition:
		return NoVolume
	case codes.ResourceExhausted, codes.Unimplemented, codes.PermissionDenied, codes.Unauthenticated:
		return Unchanged
	case codes.NotFound:
		return SourceMissing
	case codes.AlreadyExists:
		return Mismatch
	case codes.Internal, codes.Unknown, codes.DataLoss:
		return Uncertain
	default:
		return Unanswered
	}
}

// After returns what is known of the volume after a failed call, from the outcome and from
// what was known before the call. While an earlier call is unanswered, NoVolume counts only
// if it is repeated after a long time: the driver refuses the request of now, while its backend
// may still create the disk of the earlier call. With the entry gone, nobody would know that disk.
func After(outcome Outcome, before Creation, failedLongAgo bool) Creation {
	switch outcome {
	case Unanswered:
		return Requested
	case Mismatch:
		return Doubtful
	case Uncertain:
		if before == Requested || before == FailedOnce {
			return Requested
		}
		return Doubtful
	default:
		return afterNoVolume(outcome, before, failedLongAgo)
	}
}

// afterNoVolume returns what is known after the driver reported that there is no volume.
func afterNoVolume(outcome Outcome, before Creation, failedLongAgo bool) Creation {
	isOpen := before == Requested || before == Doubtful || before == FailedOnce
	switch {
	case !isOpen:
		return Failed
	case outcome == SourceMissing, outcome == Unchanged:
		return before
	case before == FailedOnce && failedLongAgo:
		return Failed
	}
	return FailedOnce
}

// Unresolved returns why repeating the request cannot tell whether there is a volume, ""
// if it may. TriedAll: each known request for the volume was refused.
func Unresolved(outcome Outcome, triedAll bool) string {
	switch {
	case outcome == Mismatch && triedAll:
		return "the driver has a volume of that name, and says to every known request that it does not fit"
	case outcome == SourceMissing:
		return "the driver no longer finds what the request names, such as its source, which an earlier call may have found"
	}
	return ""
}

// CauseOf returns the cause of a failed call. An infeasible request is repeated as any
// other one while no claim wants the volume.
func CauseOf(infeasible, ignored bool, want Want) Cause {
	switch {
	case ignored:
		return CallIgnored
	case infeasible && want == Wanted:
		return CallInfeasible
	}
	return CallFailed
}

// Adopted returns what the entry of an earlier process is to this one, which repeats its request. An
// Untrusted entry is written again in the own term.
func Adopted(inherited Entry) Entry {
	if inherited == Untrusted {
		return Outdated
	}
	return Durable
}

// GivesUpNode reports whether the scheduler must select another node, after the request
// could not be built. Unsuitable: the selected node cannot have the volume. An open request
// is sent again as it was, for a limited time.
func GivesUpNode(s State, unsuitable bool) bool {
	isOpen := s.Creation == Requested || s.Creation == FailedOnce
	return unsuitable && s.Want == Wanted && (!s.Stored || !isOpen || s.LongRequested)
}
