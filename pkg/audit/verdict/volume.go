package verdict

import "github.com/exeunt-io/exeunt/internal/enum"

// State is what an audit knows of one volume of the storage system. The references are
// those of all clusters, in both passes of the audit.
type State struct {
	// Recorded: a PersistentVolume has the handle.
	Recorded bool
	// Attached: the driver or a VolumeAttachment says that a node uses the volume.
	Attached bool
	// SnapshotSource: a VolumeSnapshotContent or a VolumeGroupSnapshotContent names the volume.
	SnapshotSource bool
	// CloneSource: a listed volume, or a request in the journal, has the volume as its source.
	CloneSource bool
	// Inline: a pod has the volume inline, or the handle is that of a kubelet.
	Inline bool
	// HandleAlike: the handle differs from a used handle in case, project, path or zone only.
	HandleAlike bool
	// EntryUnresolved: an unresolved or unreadable journal entry may be about the volume.
	EntryUnresolved bool
	// InFlight: a claim or a journal entry may be about the volume.
	InFlight bool

	// Enumerated: the driver listed all its volumes.
	Enumerated bool
	// Complete: all references were read.
	Complete bool
	// ListedTwice: both lists of volumes have the volume.
	ListedTwice bool
}

// Class is what an audit says about a volume.
type Class int

const (
	// Known: a PersistentVolume records the volume.
	Known Class = iota
	// Doubtful: no PersistentVolume records the volume, but something may need it.
	Doubtful
	// Orphan: nothing that was read refers to the volume.
	Orphan
)

// String returns the name of the value.
func (c Class) String() string { return enum.Name(c, "Known", "Doubtful", "Orphan") }

// Reason is why a volume is doubtful.
type Reason int

const (
	// NoReason: the volume is not doubtful.
	NoReason Reason = iota
	// Attached: a node uses the volume.
	Attached
	// SnapshotSource: a snapshot was taken of the volume.
	SnapshotSource
	// CloneSource: another volume was cloned from the volume.
	CloneSource
	// InlineVolume: the volume belongs to a pod without a claim.
	InlineVolume
	// HandleAlike: a used handle differs in case, project, path or zone only.
	HandleAlike
	// CreationInFlight: the volume may be recorded soon.
	CreationInFlight
	// Unresolved: whether something refers to the volume could not be found out.
	Unresolved
	// SeenOnce: only one of the two lists has the volume.
	SeenOnce
)

// String returns the reason as the JSON output has it.
func (r Reason) String() string {
	return enum.Name(r, "", "Attached", "SnapshotSource", "CloneSource", "InlineVolume", "HandleAlike", "CreationInFlight",
		"Unresolved", "SeenOnce")
}

// MarshalText returns the reason for JSON and YAML.
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// Verdict is what an audit says about a volume, and why.
type Verdict struct {
	Class  Class
	Reason Reason
}

// Decide returns the verdict on one volume. It is total and pure. Only the last case
// returns Orphan, for a volume that nothing refers to.
func Decide(s State) Verdict {
	switch {
	case s.Recorded:
		return Verdict{Known, NoReason}
	case s.Attached:
		return Verdict{Doubtful, Attached}
	case s.SnapshotSource:
		return Verdict{Doubtful, SnapshotSource}
	case s.CloneSource:
		return Verdict{Doubtful, CloneSource}
	case s.Inline:
		return Verdict{Doubtful, InlineVolume}
	case s.HandleAlike:
		return Verdict{Doubtful, HandleAlike}
	case s.EntryUnresolved:
		return Verdict{Doubtful, Unresolved}
	case s.InFlight:
		return Verdict{Doubtful, CreationInFlight}
	case !s.Enumerated || !s.Complete:
		return Verdict{Doubtful, Unresolved}
	case !s.ListedTwice:
		return Verdict{Doubtful, SeenOnce}
	}
	return Verdict{Orphan, NoReason}
}
