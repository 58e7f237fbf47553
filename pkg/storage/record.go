package storage

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/internal/enum"
)

// Record says whether the PersistentVolume with the name of a claim's volume records
// that volume.
type Record int

const (
	// RecordAbsent: no PersistentVolume has the name.
	RecordAbsent Record = iota
	// RecordPresent: the PersistentVolume refers to the claim by UID.
	RecordPresent
	// RecordConflict: the PersistentVolume refers to another claim, or to none by UID.
	RecordConflict
	// RecordElsewhere: the PersistentVolume refers to the claim by UID, but its disk cannot be that of this process, which
	// serves another node.
	RecordElsewhere
)

// IsOfClaim reports whether the PersistentVolume refers to the claim.
func (r Record) IsOfClaim() bool { return r == RecordPresent || r == RecordElsewhere }

// RecordOf compares the PersistentVolume, nil for none, with the claim's UID. The handle
// does not count: a driver may spell the handle of one disk in two ways.
func RecordOf(volume *v1.PersistentVolume, claim types.UID) Record {
	switch {
	case volume == nil:
		return RecordAbsent
	case volume.Spec.ClaimRef == nil || volume.Spec.ClaimRef.UID != claim:
		return RecordConflict
	}
	return RecordPresent
}

// String returns the name of the value.
func (r Record) String() string { return enum.Name(r, "Absent", "Present", "Conflict", "Elsewhere") }
