package reclaim

import (
	"github.com/exeunt-io/exeunt/pkg/storage"

	v1 "k8s.io/api/core/v1"
)

// MarkAnnotation on a volume says that it was deleted before its finalizer came,
// and how far its reclaim is. The provisioner writes it; the pv-controller keeps
// pv-protection on the volume while it says [Mark] pending.
const (
	MarkAnnotation = "exeunt.io/reclaim"
	MarkedPending  = "pending"
	MarkedDone     = "done"
)

// Mark is the mark on a volume that was deleted before its finalizer came.
type Mark int

const (
	// NoMark: there is none, or one that says nothing known.
	NoMark Mark = iota
	// MarkPending: the driver has not deleted the volume yet.
	MarkPending
	// MarkDone: the driver has deleted the volume.
	MarkDone
)

// MarkOf returns the mark on the volume.
func MarkOf(volume *v1.PersistentVolume) Mark {
	return map[string]Mark{MarkedPending: MarkPending, MarkedDone: MarkDone}[volume.Annotations[MarkAnnotation]]
}

// HoldState is what decides whether a volume that is being deleted must be held.
type HoldState struct {
	// Honor is the gate HonorPVReclaimPolicy.
	Honor  bool
	Plugin Plugin
	Policy storage.Policy
	// Phase is the volume's own, or the one that is about to be written.
	Phase storage.Phase
	// InTree: the volume carries that finalizer.
	InTree bool
	// Mark is meaningful for the volumes of external provisioners.
	Mark Mark
	// Claim is the claim that the volume refers to.
	Claim storage.ClaimRelation
	// Dynamic: the volume was provisioned for its claim.
	Dynamic bool
	// Deleted: the plugin has reported success, for the data of this claim.
	Deleted bool
}

// Held says whether pv-protection must stay on a volume that is being deleted,
// though it is no longer bound: it is to be reclaimed, and the finalizer that
// should hold it until then is missing. Nobody reclaims a volume whose claim exists,
// so that nobody would remove the protection.
func Held(s HoldState) bool {
	if !s.Honor || s.Policy != storage.PolicyDelete || s.Phase != storage.PhaseReleased && s.Phase != storage.PhaseFailed || !MayReclaim(s.Claim, s.Dynamic, true) {
		return false
	}
	switch s.Plugin {
	case Deletes:
		return !s.InTree && !s.Deleted
	case External, Migrated:
		return s.Mark == MarkPending
	case Missing:
	}
	return false
}
