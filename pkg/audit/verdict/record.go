package verdict

import "github.com/exeunt-io/exeunt/internal/enum"

// Existence is the answer of the driver to ValidateVolumeCapabilities.
type Existence int

const (
	// Unasked: the driver was not asked.
	Unasked Existence = iota
	// Exists: the driver knows the volume.
	Exists
	// Absent: the driver answered NotFound.
	Absent
	// Unanswered: the driver answered with another error.
	Unanswered
)

// String returns the name of the value.
func (e Existence) String() string {
	return enum.Name(e, "Unasked", "Exists", "Absent", "Unanswered")
}

// RecordState is what an audit knows of one PersistentVolume of the driver.
type RecordState struct {
	// Listed: a list of volumes that began after the PersistentVolume was seen has the handle.
	Listed bool
	// Answer is the driver's answer about the handle, later than that list.
	Answer Existence
	// Present: a live read after the answer found the same PersistentVolume.
	Present bool
	// Released and Terminating are from that live read.
	Released, Terminating bool
}

// RecordClass is what an audit says about a PersistentVolume.
type RecordClass int

const (
	// Sound: the volume is listed, or the PersistentVolume is about to go.
	Sound RecordClass = iota
	// Unlisted: the volume exists, or may exist, but the driver did not list it.
	Unlisted
	// Ghost: the volume does not exist, and nobody has deleted it in Kubernetes.
	Ghost
)

// String returns the name of the value.
func (c RecordClass) String() string { return enum.Name(c, "Sound", "Unlisted", "Ghost") }

// DecideRecord returns the verdict on one PersistentVolume. It is total and pure.
func DecideRecord(s RecordState) RecordClass {
	switch {
	case s.Listed || s.Answer == Unasked:
		return Sound
	case s.Answer != Absent:
		return Unlisted
	case !s.Present || s.Released || s.Terminating:
		return Sound
	}
	return Ghost
}
