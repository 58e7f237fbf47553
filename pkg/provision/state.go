package provision

import (
	"github.com/exeunt-io/exeunt/internal/enum"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// Want is what a claim needs from this provisioner now.
type Want int

const (
	// Unserved: nothing; the claim waits for a selected node, or for another provisioner.
	Unserved Want = iota
	// Wanted: a volume.
	Wanted
	// Misplaced: a volume, but not for the node of the last request: that node is
	// gone or full, another one was selected since, or the volume is unusable.
	Misplaced
	// Unwanted: nothing more; the claim is gone, is being deleted or names another volume.
	Unwanted
	// BoundOrLost: the claim is Bound or Lost and names the volume. CreateVolume is never
	// called for the claim again: the volume may hold data.
	BoundOrLost
)

// String returns the name of the value.
func (w Want) String() string {
	return enum.Name(w, "Unserved", "Wanted", "Misplaced", "Unwanted", "BoundOrLost")
}

// Creation is what is known of the volume in the storage system.
type Creation int

const (
	// NotRequested: no call is unanswered.
	NotRequested Creation = iota
	// Requested: a call has no final answer. The same request is sent again.
	Requested
	// Doubtful: the driver failed with a code that usually, but not always, means that
	// there is no volume. The request may be built again for a claim that wants a volume.
	Doubtful
	// FailedOnce: the driver reported once that there is no volume, while an earlier call
	// was unanswered.
	FailedOnce
	// Failed: there is no volume.
	Failed
	// Created: there is a volume, and its handle is known.
	Created
)

// String returns the name of the value.
func (c Creation) String() string {
	return enum.Name(c, "NotRequested", "Requested", "Doubtful", "FailedOnce", "Failed", "Created")
}

// Entry is what the journal has about the claim's volume.
type Entry int

const (
	// NoEntry: nothing.
	NoEntry Entry = iota
	// Outdated: an entry with another request, or an entry that is not durable yet.
	Outdated
	// Durable: an entry with the next request.
	Durable
	// Discarding: an entry of a volume that is being discarded.
	Discarding
	// Inherited: an entry of an earlier process, in unbroken custody.
	Inherited
	// InheritedDiscarding: the same, of a volume that was being discarded and whose request cannot be repeated.
	InheritedDiscarding
	// Untrusted: an entry of an earlier process, and another program led since.
	Untrusted
	// UntrustedDiscarding: the same, of a volume that was being discarded and whose request cannot be repeated.
	UntrustedDiscarding
)

// String returns the name of the value.
func (e Entry) String() string {
	return enum.Name(e, "NoEntry", "Outdated", "Durable", "Discarding", "Inherited", "InheritedDiscarding", "Untrusted",
		"UntrustedDiscarding")
}

// Prepared is how far the request is built.
type Prepared int

const (
	// Unprepared: not yet.
	Unprepared Prepared = iota
	// Ready: it can be sent.
	Ready
	// Refused: it cannot be built now.
	Refused
)

// String returns the name of the value.
func (p Prepared) String() string { return enum.Name(p, "Unprepared", "Ready", "Refused") }

// Read is what was read live from the API server.
type Read int

const (
	// Cached: nothing.
	Cached Read = iota
	// ClaimRead: the claim.
	ClaimRead
	// BothRead: the claim, and the volume of its name.
	BothRead
)

// String returns the name of the value.
func (r Read) String() string { return enum.Name(r, "Cached", "ClaimRead", "BothRead") }

// State is what is known of one claim and its volume.
type State struct {
	Want     Want
	Record   storage.Record
	Creation Creation
	Entry    Entry
	Prepared Prepared
	Read     Read
	// Journaled: calls need a durable entry. It is false with the gate
	// ProvisioningJournal off, without the right to write Leases, and for a request that
	// is too large.
	Journaled bool
	// Made: a request of this process made the volume, which no earlier term can have filled with data. Another
	// volume of that name, such as one of a claim that a restore of etcd brought back, is never discarded.
	Made bool
	// Unusable: the created volume cannot serve the claim. It is Made: another one is no answer to the request.
	Unusable bool
	// MayBeKept: a PersistentVolume may have recorded the volume, and its user may have removed the
	// object, and its finalizer by hand, to keep the volume, which may hold data.
	MayBeKept bool
	// Unannounced: the entry does not say yet that a PersistentVolume of the created volume may exist, and that its
	// user may have kept the volume.
	Unannounced bool
	// LongRequested: the request has been open for so long that the one of a claim that wants
	// a volume may be built again. The entry keeps the old one.
	LongRequested bool
	// Stored: the last request is known and can be sent again.
	Stored bool
	// NodeRead: the selected node of the claim was read live, or none is selected.
	NodeRead bool
	// Called: the driver was called for the claim in this pass.
	Called bool
	// WriteOpen: a write of the PersistentVolume has no answer, and may still take effect.
	WriteOpen bool
	// Leading: the lease is valid for longer than a call may take to begin.
	Leading bool
	// Overdue: only an administrator can find out about the volume.
	Overdue bool
}

// Action is the one thing to do next. Each is idempotent.
type Action int

const (
	// Wait changes nothing.
	Wait Action = iota
	// Prepare builds the request.
	Prepare
	// UseStored takes the last request, to send the same one again.
	UseStored
	// ReadClaim reads the claim from the API server and decides again.
	ReadClaim
	// ReadBoth reads claim and volume from the API server and decides again.
	ReadBoth
	// ReadNode reads the selected node from the API server.
	ReadNode
	// Adopt takes over an entry of an earlier process.
	Adopt
	// WriteEntry makes an entry with the request durable.
	WriteEntry
	// WriteDiscarding makes the entry Discarding durable.
	WriteDiscarding
	// Announce makes durable in the entry that a PersistentVolume may exist.
	Announce
	// Create calls CreateVolume.
	Create
	// Save creates the PersistentVolume.
	Save
	// AcceptRecord notes that the created volume is recorded already.
	AcceptRecord
	// Discard calls DeleteVolume for a volume that no PersistentVolume records.
	Discard
	// RemoveEntry removes the entry.
	RemoveEntry
	// MoveToUnresolved moves the entry to the unresolved entries, which an administrator ends.
	MoveToUnresolved
	// Reschedule has the scheduler select another node.
	Reschedule
)

// String returns the name of the value.
func (a Action) String() string {
	return enum.Name(a, "Wait", "Prepare", "UseStored", "ReadClaim", "ReadBoth", "ReadNode", "Adopt", "WriteEntry",
		"WriteDiscarding", "Announce", "Create", "Save", "AcceptRecord", "Discard",
		"RemoveEntry", "MoveToUnresolved", "Reschedule")
}

// Decision is an action and the reason for it.
type Decision struct {
	Action Action
	Reason Reason
}

// Reason says why an action is taken.
type Reason string

// The reasons of this package.
const (
	// VolumeWanted: the claim wants a volume.
	VolumeWanted Reason = "VolumeWanted"
	// VolumeRecorded: a PersistentVolume records the volume.
	VolumeRecorded Reason = "VolumeRecorded"
	// VolumeUnused: the volume cannot serve the claim.
	VolumeUnused Reason = "VolumeUnused"
	// OutcomeUnknown: the storage system may have a volume that is not recorded.
	OutcomeUnknown Reason = "OutcomeUnknown"
	// VolumeAbsent: the storage system has no volume for the claim.
	VolumeAbsent Reason = "VolumeAbsent"
	// ClaimBoundOrLost: the claim is Bound or Lost and names the volume.
	ClaimBoundOrLost Reason = "ClaimBoundOrLost"
	// NameInUse: another volume has the name of the claim's volume.
	NameInUse Reason = "NameInUse"
	// RequestRefused: the request cannot be built.
	RequestRefused Reason = "RequestRefused"
	// NodeUnfit: the selected node is gone or full.
	NodeUnfit Reason = "NodeUnfit"
	// NotWanted: the claim wants nothing now.
	NotWanted Reason = "NotWanted"
	// EntryInherited: an earlier process wrote the entry.
	EntryInherited Reason = "EntryInherited"
	// CustodyBroken: another program led after the entry was written.
	CustodyBroken Reason = "CustodyBroken"
	// NoAnswer: only an administrator can find out about the volume.
	NoAnswer Reason = "NoAnswer"
	// DiscardInterrupted: an earlier process was deleting the volume, whose handle may be that of another one by now.
	DiscardInterrupted Reason = "DiscardInterrupted"
	// VolumeMayBeKept: the claim is gone, and its user may have kept the volume.
	VolumeMayBeKept Reason = "VolumeMayBeKept"
	// VolumeElsewhere: the claim got a volume that another node's process created, and this one may have created
	// another.
	VolumeElsewhere Reason = "VolumeElsewhere"
	// LeaseEnding: the leader lease may end during a call.
	LeaseEnding Reason = "LeaseEnding"
	// WriteUnanswered: a write of the PersistentVolume may still take effect.
	WriteUnanswered Reason = "WriteUnanswered"
)
