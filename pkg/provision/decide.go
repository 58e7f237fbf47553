package provision

import (
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// Decide returns the next step for the volume of one claim. It is total and pure.
// DeleteVolume follows from one case only, never from a default, and never from an
// untrusted entry.
func Decide(s State) Decision {
	switch {
	case s.Entry >= Inherited:
		return decideInherited(s)
	case s.Record == storage.RecordElsewhere && s.Entry != NoEntry && !s.isSettled():
		return Decision{MoveToUnresolved, VolumeElsewhere}
	case s.Want == BoundOrLost:
		// The disk may hold data, although its PersistentVolume is gone. CreateVolume would return this disk,
		// for a PersistentVolume with the policy of the class: Delete, where the user chose Retain.
		return conclude(s, ClaimBoundOrLost)
	case s.Record.IsOfClaim():
		return conclude(s, VolumeRecorded)
	case s.mustLeaveAlone():
		return leaveAlone(s)
	case s.Creation == Created:
		return decideCreated(s)
	case s.mustRepeat():
		return decideRequested(s)
	}
	return decideAbsent(s)
}

// mustRepeat reports whether the stored request must be repeated until its outcome
// is known. That of a claim which still waits for a volume, on this node or on another,
// is repeated for a limited time: the entry keeps it beside a new one.
func (s State) mustRepeat() bool {
	switch s.Creation {
	case Requested:
		return s.Want != Wanted && s.Want != Misplaced || !s.LongRequested
	case FailedOnce:
		return true
	case Doubtful:
		return s.Want == Unwanted || s.Want == Unserved
	case NotRequested, Failed, Created:
	}
	return false
}

// decideInherited decides on an entry of an earlier process, after live reads. An
// untrusted entry leads to a call only for a claim that still wants its volume.
func decideInherited(s State) Decision {
	switch {
	case s.Read != BothRead:
		return Decision{ReadBoth, EntryInherited}
	case s.Record == storage.RecordElsewhere:
		return Decision{MoveToUnresolved, VolumeElsewhere}
	case s.Record == storage.RecordPresent:
		return Decision{RemoveEntry, VolumeRecorded}
	case s.Want == BoundOrLost:
		return Decision{RemoveEntry, ClaimBoundOrLost}
	case s.Entry == UntrustedDiscarding, s.Entry == Untrusted && s.Want == Unwanted:
		// Another program has led since the entry was written. It may have finished the request, and a user
		// may have kept the disk since: a repeated request would have it recorded, and then deleted.
		return Decision{MoveToUnresolved, CustodyBroken}
	case s.Entry == InheritedDiscarding:
		// The handle of the entry may be that of another volume by now, and the entry has no request that
		// would find the volume by its name.
		return Decision{MoveToUnresolved, DiscardInterrupted}
	}
	return Decision{Adopt, EntryInherited}
}

// isRecorded reports whether the created volume was meant to be recorded, and the
// PersistentVolume exists.
func (s State) isRecorded() bool {
	return s.Creation == Created && s.Record.IsOfClaim() && !s.Unusable && s.Entry != Discarding &&
		(s.Want != Misplaced && s.Want != Unserved || !s.Made)
}

// conclude removes the entry of a volume that is recorded, or that a bound claim may use.
func conclude(s State, reason Reason) Decision {
	switch {
	case s.isRecorded():
		return Decision{AcceptRecord, reason}
	case s.Entry != NoEntry:
		return Decision{RemoveEntry, reason}
	}
	return Decision{Wait, reason}
}

// decideCreated has a created volume recorded, or deleted if no claim can use it. The
// volume of a claim that is gone is recorded as well, and then reclaimed by its policy. A volume
// that may be older than the request may hold data: it is recorded where it is, or left alone.
func decideCreated(s State) Decision {
	isUsed := s.Record == storage.RecordAbsent && !s.Unusable && (s.Want == Wanted || s.Want == Unwanted || !s.Made)
	switch {
	case isUsed && s.Journaled && s.Unannounced:
		// The soak lost a disk (seed 433484304): a write of a former leader, late by seconds, created the
		// PersistentVolume, and its user removed it to keep the disk. The next leader repeated the request, got
		// a smaller volume for an answer, and deleted it. Now it leaves the volume of an announced entry alone.
		return Decision{Announce, VolumeWanted}
	case isUsed:
		return Decision{Save, VolumeWanted}
	}
	return decideUnrecordable(s)
}

// decideUnrecordable is for a created volume that cannot be recorded. Only a volume of this request is deleted: after a
// restore of etcd a claim waits again whose disk is full of data, and CreateVolume returns this disk. If the next pod
// was in another zone, the disk did not fit the request, and was deleted.
func decideUnrecordable(s State) Decision {
	switch {
	case s.Record == storage.RecordConflict && s.Read != BothRead:
		return Decision{ReadBoth, NameInUse}
	case !s.Made && s.Want == Unwanted && (s.Journaled || s.Entry != NoEntry):
		return Decision{MoveToUnresolved, NameInUse}
	case !s.Made:
		return Decision{Wait, NameInUse}
	}
	return decideUnused(s)
}

// decideUnused has a created volume deleted that no claim can use. A late write of its PersistentVolume
// would bind a living claim to a disk that is gone; that of a claim that is gone is reclaimed.
func decideUnused(s State) Decision {
	switch {
	case s.Entry != Discarding && (s.Journaled || s.Entry != NoEntry):
		return Decision{WriteDiscarding, VolumeUnused}
	case s.WriteOpen && s.Want != Unwanted:
		// The node of the claim changed while a write of the PersistentVolume had no answer. The disk was
		// deleted, the API server executed the write, and the claim was bound to a disk that was gone.
		return Decision{Wait, WriteUnanswered}
	case s.Read != BothRead:
		return Decision{ReadBoth, VolumeUnused}
	case !s.Leading:
		return Decision{Wait, LeaseEnding}
	}
	return Decision{Discard, VolumeUnused}
}

// mustLeaveAlone reports whether a user may keep the volume of an open request. Its
// PersistentVolume may exist, or may have existed, so both objects are read first.
func (s State) mustLeaveAlone() bool {
	isOpen := s.Creation != NotRequested && s.Creation != Failed
	return s.MayBeKept && isOpen && (s.Want == Unwanted || s.Read != BothRead)
}

// leaveAlone leaves a volume to an administrator: its claim is gone, and may have used it.
func leaveAlone(s State) Decision {
	switch {
	case s.Read != BothRead:
		return Decision{ReadBoth, VolumeMayBeKept}
	case s.Entry != NoEntry || s.Journaled:
		return Decision{MoveToUnresolved, VolumeMayBeKept}
	}
	return Decision{Wait, VolumeMayBeKept}
}

// decideRequested repeats a request until its outcome is known. For a claim that wants no
// volume the entry becomes unresolved in the end.
func decideRequested(s State) Decision {
	if s.Overdue && s.Want == Unwanted && s.Entry != NoEntry {
		return Decision{MoveToUnresolved, NoAnswer}
	}
	return request(s, OutcomeUnknown)
}

// decideAbsent serves a claim for which the storage system has no volume.
func decideAbsent(s State) Decision {
	switch {
	case s.Entry != NoEntry && (s.Creation == Failed || s.Creation == NotRequested && s.Want != Wanted):
		return Decision{RemoveEntry, VolumeAbsent}
	case s.Want == Unwanted:
		return Decision{Wait, VolumeAbsent}
	case s.Want == Unserved:
		return Decision{Wait, NotWanted}
	case s.Want == Misplaced:
		return Decision{Reschedule, NodeUnfit}
	case s.Record == storage.RecordConflict && s.Read != BothRead:
		return Decision{ReadBoth, NameInUse}
	case s.Record == storage.RecordConflict && s.Entry != NoEntry && s.Creation == NotRequested:
		return Decision{RemoveEntry, NameInUse}
	case s.Record == storage.RecordConflict:
		return Decision{Wait, NameInUse}
	}
	return request(s, VolumeWanted)
}

// prepare returns the step towards a request, and Wait if the request is ready or cannot
// be built. Nothing that has changed since the last request must stop the cleanup of its
// volume: the same request is sent again while its outcome is unknown, and for a claim
// that does not want the volume.
func prepare(s State) Action {
	isOpen := s.Creation == Requested || s.Creation == FailedOnce
	switch {
	case s.Prepared == Refused && s.Stored && isOpen:
		return UseStored
	case s.Prepared != Unprepared:
		return Wait
	case s.Stored && (s.Want != Wanted || isOpen && !s.LongRequested):
		return UseStored
	}
	return Prepare
}

// request takes the steps up to CreateVolume.
func request(s State, reason Reason) Decision {
	step := prepare(s)
	switch {
	case s.Called:
		return Decision{Wait, reason}
	case step != Wait:
		return Decision{step, reason}
	case s.Prepared == Refused:
		return Decision{Wait, RequestRefused}
	}
	return call(s, reason)
}

// call takes the steps from a request to CreateVolume: the claim and its node as they are
// now, a durable entry, and a lease that lasts.
func call(s State, reason Reason) Decision {
	switch {
	case s.Read == Cached:
		// CreateVolume returns the existing disk for a name that the driver knows. By a late watch a claim
		// that was gone looked new: the disk that its user had kept by the policy Retain was recorded with
		// the policy Delete of the class, and deleted. An hour of soak found it.
		return Decision{ReadClaim, reason}
	case s.Creation == Requested && s.Want == Wanted && !s.NodeRead:
		return Decision{ReadNode, reason}
	case s.Journaled && s.Entry != Durable:
		return Decision{WriteEntry, reason}
	case !s.Leading:
		return Decision{Wait, LeaseEnding}
	}
	return Decision{Create, reason}
}
