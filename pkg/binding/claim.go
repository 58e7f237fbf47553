package binding

import (
	"time"

	"github.com/exeunt-io/exeunt/internal/enum"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// Class is what the storage class of an unbound claim allows.
type Class int

const (
	// NoClass: the claim names no class, and there is no default class.
	NoClass Class = iota
	// DefaultExists: the claim has no class field, and a default class exists.
	DefaultExists
	// NoSuchClass: the class does not exist.
	NoSuchClass
	// Delayed: the class waits for the first consumer, and no node is selected.
	Delayed
	// NoProvisioner: the class has no provisioner that can create volumes.
	NoProvisioner
	// Provisionable: the class has an external provisioner.
	Provisionable
	// ProvisionableHere: the class has an in-tree plugin of this program.
	ProvisionableHere
)

// String returns the name of the value.
func (c Class) String() string {
	return enum.Name(c, "None", "DefaultExists", "Missing", "Delayed", "NoProvisioner", "Provisionable",
		"ProvisionableHere")
}

// Status is the status of a claim, compared with the status that its phase requires.
type Status int

const (
	// OtherStatus: the status is incomplete or wrong.
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

// ClaimState is the state of one claim.
type ClaimState struct {
	// Completed: the claim has the annotation bind-completed.
	Completed bool
	// Named: the claim names a volume.
	Named bool
	// Deleting: the claim has a deletion timestamp.
	Deleting bool
	// Volume is the volume that the claim names, or the volume that refers to the claim, or
	// the volume that the index found, in this order.
	Volume Relation
	// VolumeBound: the phase of that volume is Bound.
	VolumeBound bool
	// VolumeScrubbed: a recycler pod or a plugin that has not ended may remove data of that volume.
	VolumeScrubbed bool
	// Class matters only for a claim without a volume.
	Class Class
	// Dynamic: dynamic provisioning is enabled.
	Dynamic bool
	// Requested: the claim names the provisioner of its class.
	Requested bool
	// Provisioning: an in-tree plugin of this program provisions the volume, until the phase
	// of the volume is Bound.
	Provisioning bool
	// MigratedToWrong: the annotation migrated-to does not name the CSI driver that replaced
	// the in-tree plugin, or names a driver although no driver replaced the plugin.
	MigratedToWrong bool
	Status          Status
	// Confirmed: the volume was read from or written to the API server in this pass.
	Confirmed bool
}

// ClaimAction is the next step for a claim.
type ClaimAction int

// The steps of binding, in their order, and the steps for a claim without a volume.
const (
	// Wait changes nothing.
	Wait ClaimAction = iota
	// BindFreeVolume sets the volume's claimRef, with the annotation bound-by-controller.
	BindFreeVolume
	// BindReservedVolume adds the claim's UID to the claimRef of a volume that a user reserved
	// for the claim.
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
	// RequestVolume writes the provisioner of the class into the claim.
	RequestVolume
	// ProvisionVolume provisions a volume with an in-tree plugin.
	ProvisionVolume
	// SetMigratedTo sets or removes the annotation migrated-to.
	SetMigratedTo
)

// String returns the name of the action.
func (a ClaimAction) String() string {
	return enum.Name(a, "Wait", "BindFreeVolume", "BindReservedVolume", "SetVolumePhaseBound", "BindClaim",
		"CompleteBinding",
		"SetStatusBound", "SetStatusPending", "ConfirmVolume", "SetStatusLost", "AssignClass", "RequestVolume",
		"ProvisionVolume", "SetMigratedTo")
}

// ClaimDecision is an action and its reason.
type ClaimDecision struct {
	Action ClaimAction
	Reason Reason
}

// Reason is the reason of a decision, as in logs and events.
type Reason string

// The reasons of decisions on claims.
const (
	// Binding: a volume was found and the pair is being bound.
	Binding Reason = "Binding"
	// IsBound: the pair is bound.
	IsBound Reason = "Bound"
	// VolumeMissing: the volume that the claim names does not exist.
	VolumeMissing Reason = "VolumeMissing"
	// VolumeMismatched: the volume that the claim names does not fit the claim.
	VolumeMismatched Reason = "VolumeMismatch"
	// VolumeBoundToOther: the volume that the claim names belongs to another claim.
	VolumeBoundToOther Reason = "VolumeTaken"
	// VolumeScrubbed: the claim is bound once the recycler pod or the plugin of the volume has ended.
	VolumeScrubbed Reason = "VolumeScrubbed"
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
	// ProvisionerMissing: the class has no provisioner that can create volumes.
	ProvisionerMissing Reason = "ProvisionerMissing"
	// ProvisioningOff: dynamic provisioning is disabled.
	ProvisioningOff Reason = "ProvisioningOff"
	// AwaitsProvisioner: an external provisioner creates the volume.
	AwaitsProvisioner Reason = "ExternalProvisioning"
	// PluginMigrated: a CSI driver replaced the in-tree plugin, or no longer does.
	PluginMigrated Reason = "PluginMigrated"
	// AwaitsPlugin: an in-tree plugin provisions the volume.
	AwaitsPlugin Reason = "AwaitsPlugin"
)

// Waiting is what decides when the wait of a claim is reported.
type Waiting struct {
	// ExistedAtStart: the claim existed when the program started, and may have waited for long.
	ExistedAtStart bool
	// Waited is how long the program has seen the claim wait.
	Waited time.Duration
	// Served: the provisioner has served another claim within storage.QuietWait.
	Served bool
}

// LongWait is how long a claim waits behind other claims until its wait is reported, although
// its provisioner serves them.
const LongWait = 30 * time.Second

// ReportDelay returns after what time to ask again, 0 if the event with the reason is due. A
// fast provisioner ends the wait before, and a volume is often created right after a claim that names it.
// Every other wait is reported at once.
func (r Reason) ReportDelay(w Waiting) time.Duration {
	switch {
	case r != AwaitsProvisioner && r != VolumeMissing, w.ExistedAtStart, w.Waited >= LongWait:
		return 0
	case w.Waited < storage.QuietWait:
		return storage.QuietWait - w.Waited
	case w.Served && r == AwaitsProvisioner:
		return storage.QuietWait
	}
	return 0
}

// IsFinal reports whether only a change of the claim can end the wait.
func (r Reason) IsFinal() bool {
	return r == IsBound || r == ClaimDeleting
}

// DecideClaim returns the next step for one claim.
func DecideClaim(s ClaimState) ClaimDecision {
	if s.MigratedToWrong {
		return ClaimDecision{SetMigratedTo, PluginMigrated}
	}
	return decideBinding(s)
}

func decideBinding(s ClaimState) ClaimDecision {
	switch {
	case s.Completed && !s.Named:
		return decideLost(s, ReferenceLost)
	case s.Completed && s.Volume == Missing:
		return decideLost(s, VolumeLost)
	case s.Completed && (s.Volume == BoundToOther || s.Volume == Prebound):
		return decideLost(s, Misbound)
	case s.Completed || s.Volume == BoundToClaim:
		return decideBind(s)
	case s.Deleting:
		return ClaimDecision{Wait, ClaimDeleting}
	case s.Volume == Free || s.Volume == Prebound:
		return decideBind(s)
	case s.Named:
		return decideNamed(s)
	}
	return decideUnserved(s)
}

// decideLost sets the status Lost only after a live read, because the cache may be stale.
func decideLost(s ClaimState, reason Reason) ClaimDecision {
	switch {
	case s.Status == StatusLost:
		return ClaimDecision{Wait, reason}
	case s.Named && !s.Confirmed:
		return ClaimDecision{ConfirmVolume, reason}
	}
	return ClaimDecision{SetStatusLost, reason}
}

// decideBind returns the next of the four steps of binding. A recycler pod that scrubs the volume
// would remove data of the claim, unless the claim was bound to the volume before.
func decideBind(s ClaimState) ClaimDecision {
	switch {
	case s.VolumeScrubbed && (!s.Completed || s.Volume != BoundToClaim):
		return ClaimDecision{Wait, VolumeScrubbed}
	case s.Volume == Free || s.Volume == Mismatched:
		return ClaimDecision{BindFreeVolume, Binding}
	case s.Volume != BoundToClaim:
		return ClaimDecision{BindReservedVolume, Binding}
	case !s.VolumeBound && s.Provisioning && !s.Completed:
		return ClaimDecision{ProvisionVolume, AwaitsPlugin}
	case !s.VolumeBound:
		return ClaimDecision{SetVolumePhaseBound, Binding}
	}
	return decideBindClaim(s)
}

// decideBindClaim returns the next of the steps that write the claim, once the volume is bound to it. The name of a
// volume stays in a claim for good, so a cached volume is not enough: after a restore of etcd the cache may still show
// a claimRef that was written after the backup. A claim was bound by it to a volume that was no longer its own, and
// was Lost for good.
func decideBindClaim(s ClaimState) ClaimDecision {
	switch {
	case !s.Completed && !s.Confirmed:
		return ClaimDecision{ConfirmVolume, Binding}
	case !s.Named:
		return ClaimDecision{BindClaim, Binding}
	case !s.Completed:
		return ClaimDecision{CompleteBinding, Binding}
	case s.Status != StatusBound:
		return ClaimDecision{SetStatusBound, Binding}
	}
	return ClaimDecision{Wait, IsBound}
}

// decideNamed is for a claim that names a volume which it cannot have.
func decideNamed(s ClaimState) ClaimDecision {
	switch s.Volume {
	case Mismatched:
		return decidePending(s, VolumeMismatched)
	case BoundToOther:
		return decidePending(s, VolumeBoundToOther)
	case Missing, Free, Prebound, BoundToClaim:
	}
	return decidePending(s, VolumeMissing)
}

// decideUnserved is for a claim without a volume.
func decideUnserved(s ClaimState) ClaimDecision {
	switch s.Class {
	case DefaultExists:
		return ClaimDecision{AssignClass, DefaultClass}
	case Delayed:
		return decidePending(s, AwaitsConsumer)
	case NoClass:
		return decidePending(s, NothingFits)
	case NoSuchClass, NoProvisioner, Provisionable, ProvisionableHere:
	}
	return decideProvisioning(s)
}

func decideProvisioning(s ClaimState) ClaimDecision {
	switch {
	case !s.Dynamic:
		return decidePending(s, ProvisioningOff)
	case s.Class == NoSuchClass:
		return decidePending(s, ClassMissing)
	case s.Class == NoProvisioner:
		return decidePending(s, ProvisionerMissing)
	case s.Class == ProvisionableHere && s.Requested:
		return ClaimDecision{ProvisionVolume, AwaitsPlugin}
	case s.Class == ProvisionableHere:
		return ClaimDecision{RequestVolume, AwaitsPlugin}
	case !s.Requested:
		return ClaimDecision{RequestVolume, AwaitsProvisioner}
	}
	return ClaimDecision{Wait, AwaitsProvisioner}
}

func decidePending(s ClaimState, reason Reason) ClaimDecision {
	if s.Status == StatusPending {
		return ClaimDecision{Wait, reason}
	}
	return ClaimDecision{SetStatusPending, reason}
}
