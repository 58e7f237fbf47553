// Package protection decides when a claim or a volume in use may go: the
// finalizers kubernetes.io/pvc-protection and kubernetes.io/pv-protection.
//
//	object  deleting  finalizer  in use                    action
//	claim   no        no         any                       Protect
//	claim   yes       yes        a pod uses it             Wait
//	claim   yes       yes        none in the cache         Confirm, by a live list of pods
//	claim   yes       yes        none in the live list     Unprotect
//	volume  no        no         any                       Protect
//	volume  yes       yes        phase Bound               Wait
//	volume  yes       yes        other phase, held         Wait
//	volume  yes       yes        other phase               Unprotect
//
//	source claim     deleting, no clone waits      Unprotect
//	source snapshot  nothing in the cache waits    Confirm, by a live list of claims
//	source snapshot  nothing in that list waits    Unprotect
//
// A source is what volumes are made from; the provisioner protects it before it
// asks the driver. A pod uses a claim from the moment it is scheduled until its object is gone, a
// finished pod included; a pod that was never scheduled does not hold it. For a
// generic ephemeral volume, a pod that the kubelet is done with lets go earlier.
// A volume is held while it is to be reclaimed and lacks the finalizer that should
// keep it until then: [plugin.NeedsProtection].
package protection

// Action is the one thing to do next.
type Action int

const (
	// Wait changes nothing.
	Wait Action = iota
	// Protect adds the finalizer.
	Protect
	// Confirm lists the pods live and decides again.
	Confirm
	// Unprotect removes the finalizer.
	Unprotect
)

// ClaimState is what is known of one claim.
type ClaimState struct {
	// Deleting: the claim has a deletion timestamp.
	Deleting bool
	// Protected: the claim carries the finalizer.
	Protected bool
	// Used: a pod uses the claim.
	Used bool
	// Confirmed: Used comes from the API server, not from a cache.
	Confirmed bool
}

// DecideClaim returns the next step for one claim.
func DecideClaim(s ClaimState) Action {
	switch {
	case !s.Deleting && !s.Protected:
		return Protect
	case !s.Deleting || !s.Protected || s.Used:
		return Wait
	case !s.Confirmed:
		return Confirm
	}
	return Unprotect
}

// VolumeState is what is known of one volume.
type VolumeState struct {
	// Deleting: the volume has a deletion timestamp.
	Deleting bool
	// Protected: the volume carries the finalizer.
	Protected bool
	// Bound: the phase is Bound, or about to be.
	Bound bool
	// Held: the volume must be reclaimed before it goes, and no other finalizer
	// keeps it until then.
	AwaitsReclaim bool
}

// DecideVolume returns the next step for one volume.
func DecideVolume(s VolumeState) Action {
	switch {
	case !s.Deleting && !s.Protected:
		return Protect
	case s.Deleting && s.Protected && !s.Bound && !s.AwaitsReclaim:
		return Unprotect
	}
	return Wait
}
