package check

import "github.com/exeunt-io/exeunt/internal/enum"

// Rule is what must never happen, or must not remain. Sources are KEP-2644 and the pages in
// docs/architecture; testing.md there lists the cases of each rule.
type Rule int

// The rules of [Broken].
const (
	// DataLost: DeleteVolume of a disk while a claim is bound to its volume, while one of its
	// volumes has another policy than Delete or is used otherwise, or of a disk that a user
	// keeps, or without a volume of one that is older than a restore of etcd. storage.md,
	// "DeleteVolume, once".
	DataLost Rule = iota
	// DeletedForUnreleased: DeleteVolume for a volume that is not Released, or whose claim may
	// still use it. storage.md, "CSI volumes".
	DeletedForUnreleased
	// DeletedUnrecorded: DeleteVolume of a disk that neither a volume nor an entry in the state
	// discarding names. provisioning.md, "After a restart".
	DeletedUnrecorded
	// DeletedWithEntry: DeleteVolume while the claim's journal entry stands. storage.md,
	// "DeleteVolume, once".
	DeletedWithEntry
	// DeletedAttached: DeleteVolume while a VolumeAttachment names the volume. storage.md,
	// "DeleteVolume, once".
	DeletedAttached
	// DeletedTwice: DeleteVolume again after it succeeded, without faults. storage.md,
	// "DeleteVolume, once".
	DeletedTwice
	// CreatedTwice: two disks of one name, or CreateVolume again without faults. provisioning.md,
	// invariant 5.
	CreatedTwice
	// CreatedUnwanted: a disk was created for a claim that is gone, and no entry names it.
	// provisioning.md, "After a restart".
	CreatedUnwanted
	// CreatedForBound: a disk was created for a claim that is Bound to the volume of the disk,
	// or Lost with it. A second volume of a claim is reclaimed. provisioning.md, invariant 7.
	CreatedForBound
	// CreatedWithoutEntry: a disk was created without a journal entry. provisioning.md, invariant 1.
	CreatedWithoutEntry
	// BrokenCustody: a call for an entry in broken custody whose claim is gone. provisioning.md,
	// invariant 6.
	BrokenCustody
	// Forgotten: no volume, no journal entry and no awaited call names a disk any more.
	// provisioning.md; kubernetes-csi/external-provisioner#486.
	Forgotten
	// EntryRemovedEarly: a journal entry was removed while a disk or a call of its name
	// existed and no volume recorded it. provisioning.md, invariant 2.
	EntryRemovedEarly
	// KeptRecorded: a program recorded a disk again that its user keeps. provisioning.md, "After a
	// restart", custody.
	KeptRecorded
	// ForeignFinalizer: a program of ours added, removed or reordered a finalizer of another
	// component. storage.md, "Finalizers"; KEP-2644, "Design Details".
	ForeignFinalizer
	// ClaimHeld: a program of ours added a finalizer to a claim other than pvc-protection, or
	// the one of a clone source to a claim that is no source. provisioning.md, invariant 3.
	ClaimHeld
	// FinalizerRemovedEarly: the finalizer of a reclaimer was removed while the disk existed and
	// the policy was Delete. KEP-2644, "CSI Driver volumes", "In-Tree Plugin volumes".
	FinalizerRemovedEarly
	// FirstWrite: a provisioned volume was created with policy Delete without the finalizer of
	// its reclaimer, or with another policy and the finalizer. KEP-2644, "CSI Driver volumes",
	// "In-Tree Plugin volumes".
	FirstWrite
	// FinalizerMisplaced: the provisioner added its finalizer to a volume that is not Bound with
	// policy Delete. storage.md, "CSI volumes".
	FinalizerMisplaced
	// WrongBinding: two claims Bound to one volume; the volumeName of a claim changed; a
	// claimRef given to another claim, or cleared while the claim is not bound elsewhere.
	// storage.md, "Binding in four writes".
	WrongBinding
	// ReleasedEarly: a volume was set Released or Failed while its claim was bound to it.
	// storage.md, "Release".
	ReleasedEarly
	// ChangedDeletionOrder: pv-protection was removed while the claim was bound to the volume,
	// or pvc-protection while a pod used the claim. storage.md.
	ChangedDeletionOrder
	// ForeignMetadata: a program of ours changed a label, or an annotation of another component.
	// storage.md, "Finalizers"; pkg/storage names the annotations.
	ForeignMetadata
	// PolicyChanged: a program of ours changed the reclaim policy or the source of a volume.
	// KEP-2644: the policy is the user's.
	PolicyChanged
	// ObjectDeleted: a program of ours deleted a claim, or a volume that is not to be reclaimed
	// or whose disk exists. storage.md, "CSI volumes".
	ObjectDeleted
	// NoopWrite: a write of ours changed nothing. docs/decisions.md, 10 and 20.
	NoopWrite
)

// The rules of [AtRest].
const (
	// StuckVolume: a deleted volume waits for a finalizer of ours, and no claim uses it.
	// storage.md, "Differs from KEP-2644 or upstream".
	StuckVolume Rule = iota + NoopWrite + 1
	// StuckClaim: a deleted claim waits for a finalizer of ours, and no pod or clone uses it.
	// storage.md; provisioning.md, invariant 3.
	StuckClaim
	// Leaked: no volume and no journal entry names a disk, or only volumes do that no program
	// will reclaim. KEP-2644, "Motivation".
	Leaked
	// Unreclaimed: a volume with policy Delete is left, and its claim is gone. storage.md,
	// "CSI volumes".
	Unreclaimed
	// NotBound: a claim that can be provisioned, or that a volume refers to, is not Bound; or a
	// Bound claim names a volume that is missing or refers to another claim. storage.md.
	NotBound
	// WrongPhase: the phase of a volume contradicts its claim. storage.md,
	// "Release"; storage.md, "Binding in four writes".
	WrongPhase
	// WrongFinalizer: a finalizer of a reclaimer is missing on a bound volume with policy
	// Delete, or present where it must not be. storage.md, "CSI volumes", "The gate".
	WrongFinalizer
	// Unprotected: a volume lacks pv-protection, and its provisioner is not about to delete it;
	// or a claim lacks pvc-protection. storage.md.
	Unprotected
	// EntryLeft: a journal entry is left. provisioning.md, invariant 4.
	EntryLeft
	// DiskMissing: a claim is bound to a volume without a disk, or the disk that a user keeps
	// is gone. storage.md, "CSI volumes".
	DiskMissing
)

// String returns the name of the rule.
func (r Rule) String() string {
	return enum.Name(r, "DataLost", "DeletedForUnreleased", "DeletedUnrecorded", "DeletedWithEntry", "DeletedAttached",
		"DeletedTwice",
		"CreatedTwice", "CreatedUnwanted", "CreatedForBound", "CreatedWithoutEntry", "BrokenCustody", "Forgotten",
		"EntryRemovedEarly", "KeptRecorded", "ForeignFinalizer", "ClaimHeld", "FinalizerRemovedEarly", "FirstWrite",
		"FinalizerMisplaced",
		"WrongBinding", "ReleasedEarly", "ChangedDeletionOrder", "ForeignMetadata", "PolicyChanged", "ObjectDeleted",
		"NoopWrite",
		"StuckVolume", "StuckClaim", "Leaked", "Unreclaimed", "NotBound", "WrongPhase", "WrongFinalizer", "Unprotected",
		"EntryLeft", "DiskMissing")
}
