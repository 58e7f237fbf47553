package binding

import (
	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/internal/enum"
)

// Relation is how a volume refers to one claim, the candidate for binding. What the claim
// of a volume is to the volume is [storage.ClaimRelation].
type Relation int

const (
	// Missing: there is no volume.
	Missing Relation = iota
	// Free: the volume refers to no claim.
	Free
	// Mismatched: the volume refers to no claim, and does not fit the claim.
	Mismatched
	// Prebound: the volume refers to the claim by name, without UID.
	Prebound
	// BoundToClaim: the volume refers to the claim by UID.
	BoundToClaim
	// BoundToOther: the volume refers to another claim.
	BoundToOther
)

// String returns the name of the value.
func (r Relation) String() string {
	return enum.Name(r, "Missing", "Free", "Mismatched", "Prebound", "BoundToClaim", "BoundToOther")
}

// RelationOf returns how the volume, nil for none, refers to the claim. A Free volume may
// not fit.
func RelationOf(volume *v1.PersistentVolume, claim *v1.PersistentVolumeClaim) Relation {
	if volume == nil {
		return Missing
	}
	ref := volume.Spec.ClaimRef
	switch {
	case ref == nil:
		return Free
	case ref.Namespace != claim.Namespace || ref.Name != claim.Name:
		return BoundToOther
	case ref.UID == "":
		return Prebound
	case ref.UID == claim.UID:
		return BoundToClaim
	}
	return BoundToOther
}

func (r Relation) refersToClaim() bool {
	return r == Prebound || r == BoundToClaim
}
