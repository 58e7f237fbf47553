package reclaim

import "github.com/exeunt-io/exeunt/pkg/storage"

// IsReleased reports whether the claim no longer uses the volume.
func IsReleased(claim storage.ClaimRelation) bool {
	return claim == storage.ClaimGone || claim == storage.ClaimElsewhere
}

// MayReclaim reports whether the claim allows that the volume is reclaimed: the claim no
// longer uses the volume, or was never bound to it and never will be, because the volume
// was provisioned for the claim and is being deleted. A static volume whose claim is bound to another
// one keeps its data: pv-controller makes it Available.
func MayReclaim(claim storage.ClaimRelation, dynamic, deleting bool) bool {
	switch claim {
	case storage.ClaimGone:
		return true
	case storage.ClaimElsewhere:
		return dynamic
	case storage.ClaimUnbound:
		return dynamic && deleting
	case storage.ClaimNone, storage.ClaimUnread, storage.ClaimLost, storage.ClaimBound:
	}
	return false
}
