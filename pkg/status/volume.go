package status

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/internal/enum"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/reclaim"
	"github.com/exeunt-io/exeunt/pkg/reclaim/external"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// volumeProtection says whether a volume is protected against a deletion before its claim.
type volumeProtection int

const (
	// protectionUnneeded: the disk is kept by policy, or no driver reclaims it.
	protectionUnneeded volumeProtection = iota
	// isProtected: the volume has the finalizer.
	isProtected
	// isUnprotected: deleted now, the volume would leave its disk behind.
	isUnprotected
	// deletedTooEarly: the volume is being deleted, and can get no finalizer any more.
	deletedTooEarly
)

// String returns the name of the value.
func (p volumeProtection) String() string {
	return enum.Name(p, "unneeded", "protected", "unprotected", "deleted too early")
}

// stateOf returns the volume as a provisioner with the gate on decides about it.
func stateOf(volume *corev1.PersistentVolume, claim storage.ClaimRelation) external.State {
	return external.State{
		Honor: true, Owned: true, Dynamic: storage.HasProvisioner(volume),
		Policy: storage.PolicyOf(volume.Spec.PersistentVolumeReclaimPolicy), Phase: storage.PhaseOf(volume.Status.Phase),
		Deleting: volume.DeletionTimestamp != nil, Protected: finalizer.Has(volume.Finalizers, finalizer.External),
		Claim: claim, Status: reclaim.StatusOf(volume),
	}
}

// protectionOf decides whether a volume of a driver is protected, also one that was created by hand.
func protectionOf(s external.State) volumeProtection {
	inUse := s.Phase == storage.PhaseBound || s.Phase.Released()
	switch decision := external.Decide(s); {
	case s.Policy != storage.PolicyDelete || !inUse:
		return protectionUnneeded
	case s.Protected:
		return isProtected
	case decision.Reason == external.TooLateToProtect, s.Deleting && s.Status == reclaim.StatusPending:
		return deletedTooEarly
	case decision.Reason == external.AlreadyReclaimed: // its disk was deleted, another finalizer keeps the object
		return protectionUnneeded
	}
	return isUnprotected
}

// reclaimer is who deletes the disk of a volume.
type reclaimer int

const (
	// driverReclaims: the provisioner of the CSI driver.
	driverReclaims reclaimer = iota
	// driverReclaimsLater: nobody, until our pv-controller names the driver of a migrated volume that was created by hand.
	driverReclaimsLater
	// otherReclaims: an external provisioner without a CSI driver.
	otherReclaims
)

// String returns the name of the value.
func (r reclaimer) String() string { return enum.Name(r, "driver", "driver later", "other") }

// reclaimerOf returns who deletes the disk of a volume of the driver.
func reclaimerOf(volume *corev1.PersistentVolume, driver string) reclaimer {
	switch {
	case volume.Spec.CSI == nil && volume.Annotations[storage.AnnDynamicallyProvisioned] == driver:
		return otherReclaims
	case storage.HasProvisioner(volume) || external.Owns(driver, volume):
		return driverReclaims
	}
	return driverReclaimsLater
}

// deletion says what a provisioner of Exeunt that starts now does with a volume.
type deletion int

const (
	// deletesNothing: the volume stays.
	deletesNothing deletion = iota
	// deletesDisk: the volume is deleted in the storage system at once.
	deletesDisk
	// deletesDiskAfterClaim: the volume is deleted in the storage system once its claim is gone.
	deletesDiskAfterClaim
)

// String returns the name of the value.
func (d deletion) String() string { return enum.Name(d, "nothing", "at once", "after its claim") }

// deletionOf decides what happens to a volume that is Failed, Released or Terminating.
func deletionOf(s external.State) deletion {
	if !s.Phase.Released() && !s.Deleting {
		return deletesNothing
	}
	s.Confirmed = true
	gone := s.Claim == storage.ClaimGone || s.Claim == storage.ClaimElsewhere
	if s.Phase == storage.PhaseBound && gone { // the pv-controller sets the phase first
		s.Phase = storage.PhaseReleased
	}
	switch {
	case external.Decide(s).Action == external.DeleteVolume:
		return deletesDisk
	case s.Phase == storage.PhaseBound && s.Deleting && s.Policy == storage.PolicyDelete:
		return deletesDiskAfterClaim
	}
	return deletesNothing
}

// isInTree reports whether the name is that of an in-tree plugin.
func isInTree(provisioner string) bool { return strings.HasPrefix(provisioner, "kubernetes.io/") }
