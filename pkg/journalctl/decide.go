package journalctl

// ClaimState is what the API server says of an entry's claim.
type ClaimState int

const (
	// ClaimGone: there is no claim with the UID.
	ClaimGone ClaimState = iota
	// ClaimWants: the claim names no volume, or this one, and is not bound.
	ClaimWants
	// ClaimElsewhere: the claim names another volume.
	ClaimElsewhere
	// ClaimBound: the claim is Bound or Lost and names this volume.
	ClaimBound
)

// VolumeState is what the API server says of an entry's PersistentVolume.
type VolumeState int

const (
	// VolumeMissing: there is no PersistentVolume of the name.
	VolumeMissing VolumeState = iota
	// VolumeRecorded: it refers to the claim by UID.
	VolumeRecorded
	// VolumeOfAnother: it refers to another claim, or to none by UID.
	VolumeOfAnother
)

// Action is what the administrator wants.
type Action int

const (
	// Finish: repeat the request and record the volume.
	Finish Action = iota
	// Drop: forget the entry.
	Drop
)

// Verdict is whether the action may be carried out.
type Verdict int

const (
	// Refuse: it would do harm, or nothing.
	Refuse Verdict = iota
	// Confirm: a volume may be left behind in the storage system.
	Confirm
	// Proceed: it is safe.
	Proceed
)

// Decide returns whether the action may be carried out on an unresolved entry.
func Decide(action Action, claim ClaimState, volume VolumeState) Verdict {
	switch {
	case action == Drop && volume == VolumeRecorded:
		return Proceed
	case action == Drop:
		return Confirm
	case volume != VolumeMissing || claim == ClaimBound:
		return Refuse
	}
	return Proceed
}
