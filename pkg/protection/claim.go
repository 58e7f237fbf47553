package protection

import "github.com/exeunt-io/exeunt/internal/enum"

// ClaimAction is the next step for one claim.
type ClaimAction int

const (
	// KeepClaim changes nothing.
	KeepClaim ClaimAction = iota
	// ProtectClaim adds the finalizer.
	ProtectClaim
	// ConfirmClaim lists the pods from the API server and decides again.
	ConfirmClaim
	// UnprotectClaim removes the finalizer.
	UnprotectClaim
)

// String returns the name of the value.
func (a ClaimAction) String() string {
	return enum.Name(a, "KeepClaim", "ProtectClaim", "ConfirmClaim", "UnprotectClaim")
}

// ClaimState is the state of one claim.
type ClaimState struct {
	// Deleting: the claim has a deletion timestamp.
	Deleting bool
	// Protected: the claim has the finalizer.
	Protected bool
	// Used: a pod uses the claim.
	Used bool
	// Confirmed: the pods were read from the API server, not from a cache.
	Confirmed bool
}

// DecideClaim returns the next step for one claim.
func DecideClaim(s ClaimState) ClaimAction {
	switch {
	case !s.Deleting && !s.Protected:
		return ProtectClaim
	case !s.Deleting || !s.Protected || s.Used:
		return KeepClaim
	case !s.Confirmed:
		// The cache may lack a pod that was just scheduled. Without the finalizer its claim is gone, the volume
		// is released and, with policy Delete, its disk is deleted while the pod starts.
		return ConfirmClaim
	}
	return UnprotectClaim
}
