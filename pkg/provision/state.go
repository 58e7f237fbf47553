package provision

// Want is what a claim wants of this provisioner now.
type Want int

const (
	// Unserved: nothing yet; it waits for a node to be chosen, or for somebody else.
	Unserved Want = iota
	// Wanted: a volume.
	Wanted
	// Misplaced: a volume, but not near the node that was chosen for it: the node
	// is gone, has no room left, or another one was chosen since.
	Misplaced
	// Unwanted: nothing any more; it is being deleted, is gone, or names a volume.
	Unwanted
)

// Known is what the API server has under the name of the claim's volume.
type Known int

const (
	// Absent: no PersistentVolume.
	Absent Known = iota
	// Recorded: the PersistentVolume that was made for this very claim.
	Recorded
	// Impostor: a PersistentVolume of another claim or with another handle.
	Impostor
)

// Asked is what is known of the volume in the storage system.
type Asked int

const (
	// Never: the driver was not asked for it, neither by this process nor by one before.
	Never Asked = iota
	// Perhaps: a process before this one may have asked for it.
	Perhaps
	// Pending: the driver was asked and may still be at it.
	Pending
	// Failed: the driver said that there is no volume.
	Failed
	// Denied: it said so once of a claim that no longer wants one.
	Denied
	// Settled: there is no volume: it said so twice, or has deleted the volume.
	Settled
	// Made: there is a volume, and its handle is known.
	Made
)

// Prepared is how far the request is to be sent.
type Prepared int

const (
	// Unprepared: it was not built yet.
	Unprepared Prepared = iota
	// Ready: it can be sent.
	Ready
	// Refused: it cannot be built now.
	Refused
	// Impossible: it never could be built, by what neither claim nor class can change.
	Impossible
)

// Read is what was read from the API server and not from a cache.
type Read int

const (
	// Cached: nothing.
	Cached Read = iota
	// ClaimRead: the claim.
	ClaimRead
	// BothRead: the claim, and the volume of its name.
	BothRead
)

// State is what is known of one claim and its volume.
type State struct {
	// Holds: this provisioner holds claims.
	Holds bool
	// Held: the claim carries the finalizer Provisioning.
	Held     bool
	Want     Want
	Known    Known
	Asked    Asked
	Prepared Prepared
	Read     Read
}

// Open says whether the storage system may have a volume that nobody else knows.
// What the driver said of a failure is asked again once the claim wants no volume:
// nobody would ask later.
func (s State) Open() bool {
	switch s.Asked {
	case Perhaps: // no process before this one could ask for what cannot be asked for
		return s.Prepared != Impossible
	case Pending, Denied, Made:
		return true
	case Failed:
		return s.Want == Unwanted
	case Never, Settled:
	}
	return false
}

// Action is the one thing to do next; executing it twice does no harm.
type Action int

const (
	// Wait changes nothing.
	Wait Action = iota
	// Prepare builds the request, the same as before while the outcome is unknown.
	Prepare
	// Hold puts the finalizer Provisioning on the claim.
	Hold
	// ReadClaim reads the claim from the API server and decides again.
	ReadClaim
	// ReadBoth reads claim and volume from the API server and decides again.
	ReadBoth
	// Ask calls CreateVolume.
	Ask
	// Save creates the PersistentVolume.
	Save
	// Discard calls DeleteVolume for a volume that no PersistentVolume records.
	Discard
	// LetGo takes the finalizer Provisioning off the claim.
	LetGo
	// Reschedule has the scheduler choose another node.
	Reschedule
)

// Decision is an action and why it is taken.
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
	// VolumeUnwanted: a volume was made that the claim does not want.
	VolumeUnwanted Reason = "VolumeUnwanted"
	// OutcomeUnknown: the storage system may have a volume that is not recorded.
	OutcomeUnknown Reason = "OutcomeUnknown"
	// NothingMade: the storage system has no volume for the claim.
	NothingMade Reason = "NothingMade"
	// NameTaken: another volume has the name of the claim's volume.
	NameTaken Reason = "NameTaken"
	// RequestRefused: the request cannot be built.
	RequestRefused Reason = "RequestRefused"
	// NodeUnfit: the chosen node is gone, or has no room left.
	NodeUnfit Reason = "NodeUnfit"
	// NotWanted: the claim wants nothing now.
	NotWanted Reason = "NotWanted"
)
