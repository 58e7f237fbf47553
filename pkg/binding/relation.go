package binding

import (
	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/internal/enum"
)

// Relation is how a volume refers to a claim.
type Relation int

const (
	// Missing: there is no volume.
	Missing Relation = iota
	// Free: the volume refers to no claim.
	Free
	// Unfit: the volume refers to no claim, and cannot serve this one.
	Unfit
	// Prebound: the volume refers to the claim by name, without UID.
	Prebound
	// Ours: the volume refers to the claim by UID.
	Ours
	// Foreign: the volume refers to another claim.
	Foreign
)

// String returns the name of the value.
func (r Relation) String() string {
	return enum.Name(r, "Missing", "Free", "Unfit", "Prebound", "Ours", "Foreign")
}

// RelationOf returns how the volume refers to the claim; Free does not yet say
// that it fits.
func RelationOf(volume *v1.PersistentVolume, claim *v1.PersistentVolumeClaim) Relation {
	if volume == nil {
		return Missing
	}
	ref := volume.Spec.ClaimRef
	switch {
	case ref == nil:
		return Free
	case ref.Namespace != claim.Namespace || ref.Name != claim.Name:
		return Foreign
	case ref.UID == "":
		return Prebound
	case ref.UID == claim.UID:
		return Ours
	}
	return Foreign
}

func (r Relation) refersToClaim() bool {
	return r == Prebound || r == Ours
}
