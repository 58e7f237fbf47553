package storage

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/internal/enum"
)

// ClaimRelation is the relation of a volume to the claim that its claimRef names by UID.
type ClaimRelation int

const (
	// ClaimNone: the volume refers to no claim by UID.
	ClaimNone ClaimRelation = iota
	// ClaimUnread: the volume refers to a claim, which was not read.
	ClaimUnread
	// ClaimGone: no claim with the UID exists.
	ClaimGone
	// ClaimUnbound: the claim names no volume and was never bound.
	ClaimUnbound
	// ClaimLost: the claim names no volume though it was bound once.
	ClaimLost
	// ClaimBound: the claim names the volume.
	ClaimBound
	// ClaimElsewhere: the claim names another volume.
	ClaimElsewhere
)

// UnreadClaim returns the relation as far as the volume alone tells: ClaimNone or
// ClaimUnread.
func UnreadClaim(volume *v1.PersistentVolume) ClaimRelation {
	if ref := volume.Spec.ClaimRef; ref == nil || ref.UID == "" {
		return ClaimNone
	}
	return ClaimUnread
}

// ClaimOf returns the relation of the volume to the claim that has the name of its
// claimRef, nil for no claim.
func ClaimOf(volume *v1.PersistentVolume, claim *v1.PersistentVolumeClaim) ClaimRelation {
	if ref := volume.Spec.ClaimRef; ref != nil && ref.UID != "" {
		return ClaimWithUID(claim, ref.UID, volume.Name)
	}
	return ClaimNone
}

// ClaimWithUID returns the relation of a volume, by its name, to a claim, nil for no
// claim, that has to have the UID.
func ClaimWithUID(claim *v1.PersistentVolumeClaim, uid types.UID, volume string) ClaimRelation {
	switch {
	case claim == nil || claim.UID != uid:
		return ClaimGone
	case NeverBound(claim):
		return ClaimUnbound
	case claim.Spec.VolumeName == "":
		return ClaimLost
	case claim.Spec.VolumeName == volume:
		return ClaimBound
	}
	return ClaimElsewhere
}

// String returns the name of the value.
func (c ClaimRelation) String() string {
	return enum.Name(c, "None", "Unread", "Gone", "Unbound", "Lost", "Bound", "Elsewhere")
}
