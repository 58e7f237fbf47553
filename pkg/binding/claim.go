package binding

import "github.com/exeunt-io/exeunt/internal/enum"

// Class is what the class of an unbound claim allows.
type Class int

const (
	// NoClass: the claim asks for none, and none is the default.
	NoClass Class = iota
	// DefaultExists: the claim's author chose none, and a default class exists.
	DefaultExists
	// NoSuchClass: the class does not exist.
	NoSuchClass
	// Delayed: the class waits for the first consumer, and no node is selected.
	Delayed
	// NoProvisioner: no provisioner can serve the class.
	NoProvisioner
	// Provisionable: an external provisioner serves the class.
	Provisionable
	// ProvisionableHere: an in-tree plugin of this program serves the class.
	ProvisionableHere
)

// String returns the name of the value.
func (c Class) String() string {
	return enum.Name(c, "None", "DefaultExists", "Missing", "Delayed", "NoProvisioner", "Provisionable", "ProvisionableHere")
}

// Status is the status of a claim as it stands, compared with what it should be.
type Status int

const (
	// OtherStatus: none of those below.
	OtherStatus Status = iota
	// StatusPending: phase Pending and nothing else set.
	StatusPending
	// StatusBound: phase Bound with the volume's access modes and a capacity.
	StatusBound
	// StatusLost: phase Lost.
	StatusLost
)

// String returns the name of the value.
func (s Status) String() string { return enum.Name(s, "Other", "Pending", "Bound", "Lost") }

// ClaimState is what is known of one claim.
type ClaimState struct {
	// Completed: the claim carries storage.AnnBindCompleted.
	Completed bool
	// Named: the claim names a volume.
	Named bool
	// Deleting: the claim has a deletion timestamp.
	Deleting bool
	// Volume is the volume that the claim names, that refers to it or that was
	// found for it, in this order.
	Volume Relation
	// VolumeBound: the phase of that volume is Bound.
	VolumeBound bool
	// Class is meaningful for a claim without a volume.
	Class Class
	// Dynamic: dynamic provisioning is enabled.
	Dynamic bool
	// Requested: the provisioner of the class has been asked.
	Requested bool
	// Provisioning: the volume is provisioned by an in-tree plugin of this program,
	// which is done once the volume's phase is Bound.
	Provisioning bool
	// OldFinalizer: the claim carries the finalizer Provisioning, which an older
	// version of this program added for one of its in-tree plugins.
	OldFinalizer bool
	// MigratedToWrong: the migrated-to annotation does not name the CSI driver that has
	// taken over from the in-tree plugin that was asked, or names one where none has.
	MigratedToWrong bool
	// Status is the claim's status.
	Status Status
	// Confirmed: the volume was read from the API server, not from a cache.
	Confirmed bool
}

// ClaimAction is the one thing to do next for a claim.
type ClaimAction int

// The steps of binding, in their order, and what is done where there is no volume.
const (
	// Wait changes nothing.
	Wait ClaimAction = iota
	// BindFreeVolume sets the volume's claimRef, with the annotation bound-by-controller.
	BindFreeVolume
	// BindReservedVolume adds the claim's UID to the claimRef of a volume that a person
	// reserved for the claim.
	BindReservedVolume
	// SetVolumePhaseBound sets the volume's phase Bound.
	SetVolumePhaseBound
	// BindClaim sets the claim's spec.volumeName, with the annotations bind-completed and
	// bound-by-controller.
	BindClaim
	// CompleteBinding adds the annotation bind-completed to a claim that names its volume.
	CompleteBinding
	// SetStatusBound sets the claim's status Bound.
	SetStatusBound
	// SetStatusPending sets the claim's status Pending.
	SetStatusPending
	// ConfirmVolume reads the volume from the API server and decides again.
	ConfirmVolume
	// SetStatusLost sets the claim's status Lost.
	SetStatusLost
	// AssignClass gives the claim the default class.
	AssignClass
	// RequestVolume asks the provisioner of the class for a volume.
	RequestVolume
	// ProvisionVolume makes a volume with an in-tree plugin.
	ProvisionVolume
	// SetMigratedTo sets or removes the annotation migrated-to.
	SetMigratedTo
	// RemoveFinalizer removes the finalizer that an older version added.
	RemoveFinalizer
)

// String returns the name of the action.
func (a ClaimAction) String() string {
	return enum.Name(a, "Wait", "BindFreeVolume", "BindReservedVolume", "SetVolumePhaseBound", "BindClaim", "CompleteBinding",
		"SetStatusBound", "SetStatusPending", "ConfirmVolume", "SetStatusLost", "AssignClass", "RequestVolume",
		"ProvisionVolume", "SetMigratedTo", "RemoveFinalizer")
}

// ClaimDecision is an action and why it is taken.
type ClaimDecision struct {
	Action ClaimAction
	Reason Reason
}

// Reason says why; the shell makes events of some.
type Reason string

// The reasons of this package.
const (
	// Binding: a volume was found and the pair is being bound.
	Binding Reason = "Binding"
	// IsBound: the pair is bound.
	IsBound Reason = "Bound"
	// VolumeMissing: the claim waits for the volume that it names.
	VolumeMissing Reason = "VolumeMissing"
	// VolumeUnfit: the volume that the claim names cannot serve it.
	VolumeUnfit Reason = "VolumeMismatch"
	// VolumeTaken: the volume that the claim names belongs to another claim.
	VolumeTaken Reason = "VolumeTaken"
	// ReferenceLost: a bound claim no longer names a volume.
	ReferenceLost Reason = "ReferenceLost"
	// VolumeLost: the volume of a bound claim is gone.
	VolumeLost Reason = "ClaimLost"
	// Misbound: the volume of a bound claim refers to another claim.
	Misbound Reason = "ClaimMisbound"
	// ClaimDeleting: a claim that is being deleted gets no volume.
	ClaimDeleting Reason = "ClaimDeleting"
	// DefaultClass: the default class is assigned.
	DefaultClass Reason = "DefaultClass"
	// NothingFits: no volume fits, and no class is set.
	NothingFits Reason = "FailedBinding"
	// AwaitsConsumer: the class waits for the first consumer.
	AwaitsConsumer Reason = "WaitForFirstConsumer"
	// ClassMissing: the class does not exist.
	ClassMissing Reason = "ClassMissing"
	// ProvisionerMissing: nothing here can provision for the class.
	ProvisionerMissing Reason = "ProvisionerMissing"
	// ProvisioningOff: dynamic provisioning is disabled.
	ProvisioningOff Reason = "ProvisioningOff"
	// AwaitsProvisioner: an external provisioner was asked.
	AwaitsProvisioner Reason = "ExternalProvisioning"
	// PluginMigrated: a CSI driver has taken over from the in-tree plugin that was
	// asked, or no longer does.
	PluginMigrated Reason = "PluginMigrated"
	// AwaitsPlugin: an in-tree plugin makes a volume.
	AwaitsPlugin Reason = "AwaitsPlugin"
	// FromOldVersion: the claim carries a finalizer that no version adds any more.
	FromOldVersion Reason = "FinalizerOfOldVersion"
)

// Settled says whether a claim that waits for this reason waits for nothing but its
// own change or deletion.
func (r Reason) Settled() bool {
	return r == IsBound || r == ClaimDeleting
}

// DecideClaim returns the next step for one claim.
func DecideClaim(s ClaimState) ClaimDecision {
	switch {
	case s.OldFinalizer:
		return ClaimDecision{RemoveFinalizer, FromOldVersion}
	case s.MigratedToWrong:
		return ClaimDecision{SetMigratedTo, PluginMigrated}
	}
	return decideBinding(s)
}

func decideBinding(s ClaimState) ClaimDecision {
	switch {
	case s.Completed && !s.Named:
		return lost(s, ReferenceLost)
	case s.Completed && s.Volume == Missing:
		return lost(s, VolumeLost)
	case s.Completed && (s.Volume == Foreign || s.Volume == Prebound):
		return lost(s, Misbound)
	case s.Completed || s.Volume == Ours:
		return bind(s)
	case s.Deleting:
		return ClaimDecision{Wait, ClaimDeleting}
	case s.Volume == Free || s.Volume == Prebound:
		return bind(s)
	case s.Named:
		return decideNamed(s)
	}
	return decideUnserved(s)
}

// lost alarms the user only after a live read: a cache may lag behind the claim.
func lost(s ClaimState, reason Reason) ClaimDecision {
	switch {
	case s.Status == StatusLost:
		return ClaimDecision{Wait, reason}
	case s.Named && !s.Confirmed:
		return ClaimDecision{ConfirmVolume, reason}
	}
	return ClaimDecision{SetStatusLost, reason}
}

// bind takes the next of the four steps.
func bind(s ClaimState) ClaimDecision {
	switch {
	case s.Volume == Free || s.Volume == Unfit:
		return ClaimDecision{BindFreeVolume, Binding}
	case s.Volume != Ours:
		return ClaimDecision{BindReservedVolume, Binding}
	case !s.VolumeBound && s.Provisioning && !s.Completed:
		return ClaimDecision{ProvisionVolume, AwaitsPlugin}
	case !s.VolumeBound:
		return ClaimDecision{SetVolumePhaseBound, Binding}
	case !s.Named:
		return ClaimDecision{BindClaim, Binding}
	case !s.Completed:
		return ClaimDecision{CompleteBinding, Binding}
	case s.Status != StatusBound:
		return ClaimDecision{SetStatusBound, Binding}
	}
	return ClaimDecision{Wait, IsBound}
}

// decideNamed serves a claim whose author asked for a volume that it cannot have.
func decideNamed(s ClaimState) ClaimDecision {
	switch s.Volume {
	case Unfit:
		return pending(s, VolumeUnfit)
	case Foreign:
		return pending(s, VolumeTaken)
	case Missing, Free, Prebound, Ours:
	}
	return pending(s, VolumeMissing)
}

// decideUnserved serves a claim for which there is no volume.
func decideUnserved(s ClaimState) ClaimDecision {
	switch s.Class {
	case DefaultExists:
		return ClaimDecision{AssignClass, DefaultClass}
	case Delayed:
		return pending(s, AwaitsConsumer)
	case NoClass:
		return pending(s, NothingFits)
	case NoSuchClass, NoProvisioner, Provisionable, ProvisionableHere:
	}
	return decideProvisioning(s)
}

func decideProvisioning(s ClaimState) ClaimDecision {
	switch {
	case !s.Dynamic:
		return pending(s, ProvisioningOff)
	case s.Class == NoSuchClass:
		return pending(s, ClassMissing)
	case s.Class == NoProvisioner:
		return pending(s, ProvisionerMissing)
	case s.Class == ProvisionableHere && s.Requested:
		return ClaimDecision{ProvisionVolume, AwaitsPlugin}
	case s.Class == ProvisionableHere:
		return ClaimDecision{RequestVolume, AwaitsPlugin}
	case !s.Requested:
		return ClaimDecision{RequestVolume, AwaitsProvisioner}
	}
	return ClaimDecision{Wait, AwaitsProvisioner}
}

func pending(s ClaimState, reason Reason) ClaimDecision {
	if s.Status == StatusPending {
		return ClaimDecision{Wait, reason}
	}
	return ClaimDecision{SetStatusPending, reason}
}
