package binding

import (
	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/internal/enum"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// PluginVolume is the state of the PersistentVolume that an in-tree plugin provisions
// for a claim. Its name is [ProvisionedName].
type PluginVolume int

const (
	// NotRecorded: no PersistentVolume has the name.
	NotRecorded PluginVolume = iota
	// NameConflict: a volume that was not provisioned for the claim has the name.
	NameConflict
	// Unfinished: the PersistentVolume is recorded and Pending; the plugin may not have
	// created the volume yet.
	Unfinished
	// Finished: the PersistentVolume has another phase, or another program provisions it.
	Finished
)

// String returns the name of the value.
func (v PluginVolume) String() string {
	return enum.Name(v, "NotRecorded", "NameConflict", "Unfinished", "Finished")
}

// PluginVolumeOf returns the state of the volume that has the name of the claim's, nil if
// there is none. Here tells whether an in-tree plugin of this program provisioned it.
func PluginVolumeOf(volume *v1.PersistentVolume, claim *v1.PersistentVolumeClaim, here bool) PluginVolume {
	switch {
	case volume == nil:
		return NotRecorded
	case RelationOf(volume, claim) != BoundToClaim || volume.Annotations[storage.AnnDynamicallyProvisioned] == "":
		return NameConflict
	case here && IsUnfinished(volume, claim):
		return Unfinished
	}
	return Finished
}

// IsUnfinished reports whether the volume has the name of the volume provisioned for the
// claim and is still Pending.
func IsUnfinished(volume *v1.PersistentVolume, claim *v1.PersistentVolumeClaim) bool {
	pending := volume.Status.Phase == "" || volume.Status.Phase == v1.VolumePending
	return pending && volume.Name == ProvisionedName(claim)
}

// ProvisionState is the state of one claim that an in-tree plugin provisions for.
type ProvisionState struct {
	Volume PluginVolume
	// Deleting: the PersistentVolume has a deletion timestamp.
	Deleting bool
	// Created: the plugin has created the volume in this pass.
	Created bool
	// Fits: the volume satisfies the claim, or the claim names it.
	Fits bool
}

// ProvisionAction is the next step of provisioning by an in-tree plugin.
type ProvisionAction int

const (
	// WaitForClaim changes nothing.
	WaitForClaim ProvisionAction = iota
	// RecordVolume creates the PersistentVolume.
	RecordVolume
	// CreateVolume calls the plugin.
	CreateVolume
	// SetVolumeBound sets the phase Bound and reports success.
	SetVolumeBound
	// ReportCreated reports success and leaves the phase Pending.
	ReportCreated
	// ReportNameConflict reports that another volume has the name.
	ReportNameConflict
)

// String returns the name of the action.
func (a ProvisionAction) String() string {
	return enum.Name(a, "Wait", "RecordVolume", "CreateVolume", "SetVolumeBound", "ReportCreated", "ReportNameConflict")
}

// DecideProvision returns the next step of provisioning by an in-tree plugin. The
// PersistentVolume is recorded before the plugin creates the volume: after a crash, every
// volume that the plugin created has a PersistentVolume. kube-controller-manager creates the
// directory first, under a random name: after a crash nobody finds it again.
func DecideProvision(s ProvisionState) ProvisionAction {
	switch {
	case s.Volume == NameConflict:
		return ReportNameConflict
	case s.Volume == NotRecorded:
		return RecordVolume
	case s.Volume == Finished || s.Deleting:
		return WaitForClaim
	case !s.Created:
		return CreateVolume
	case s.Fits:
		return SetVolumeBound
	}
	// As in kube-controller-manager, a volume that does not satisfy the claim stays Pending.
	return ReportCreated
}

// ProvisionedName returns the name of the volume that is provisioned for a claim.
func ProvisionedName(claim *v1.PersistentVolumeClaim) string {
	return "pvc-" + string(claim.UID)
}
