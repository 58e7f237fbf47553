package teardown

import "github.com/exeunt-io/exeunt/pkg/teardown"

// ClaimPhase is the phase of a claim.
type ClaimPhase uint8

const (
	// NoClaim: it does not exist.
	NoClaim ClaimPhase = iota
	// Requested: it is Pending, and its provisioner was asked.
	Requested
	// Bound: it has its volume.
	Bound
)

// Claim is a claim. Again: it is the second one of its name.
type Claim struct {
	Phase           ClaimPhase
	Deleting, Again bool
}

// Pod is a pod that uses the claim. Again changes with each pod of the name.
type Pod struct{ Exists, Terminating, Again bool }

// Volume is the PersistentVolume of a claim. Again is that of its claim.
type Volume struct{ Exists, Deletable, Label, Again bool }

// Call is a CreateVolume call.
type Call uint8

const (
	// NoCall is in flight.
	NoCall Call = iota
	// Sent: the storage has not done it yet.
	Sent
	// Done: the disk exists, and the provisioner has not written the PersistentVolume yet.
	Done
)

// Set is a claim with its pod, its volume, and its disk.
type Set struct {
	Claim  Claim
	Pod    Pod
	Volume Volume
	Call   Call
	Disk   bool
	// Slow: the call takes longer than two minutes. Unknown: the record says that nothing shows what became of the claim.
	Slow, Unknown bool
	// Recorded: the record has the request of the claim, and no volume of it.
	Recorded bool
	// Must: somebody wants the disk to live, and has said so in time.
	Must bool
}

// released reports whether the claim of the volume is gone.
func (s Set) released() bool {
	return s.Volume.Exists && (s.Claim.Phase == NoClaim || s.Claim.Again != s.Volume.Again)
}

// Alive is the object.
type Alive struct {
	Exists, Deleting, Held, Protected, Started bool
	// Participant: the finalizer of a participant is on it.
	Participant bool
	Word        teardown.Word
	// New: it is another object, made by an abort.
	New bool
}

// permits reports whether a person's permission holds.
func (a Alive) permits() bool {
	return a.Exists && a.Deleting && !a.Protected && a.Word == teardown.ValidWord
}

// API is what the API server has, with the storage behind it.
type API struct {
	Alive Alive
	// Undefined: the CRD of Alive is being deleted. Unready: something refuses a teardown.
	Undefined, Unready bool
	Freeze             teardown.Freeze
	Planned, Recorded  bool
	Sets               [2]Set
	Service            Service
	// Bucket: the resource of the participant exists.
	Bucket bool
}

// Kind is what a watch shows.
type Kind uint8

const (
	// None of the watches is late.
	None Kind = iota
	// Signals: Alive, its CRD, and the freeze.
	Signals
	// Volumes: the PersistentVolumes.
	Volumes
	// Claims: claims and pods.
	Claims
	// Services: the Service.
	Services
)

// Runner is one of two runners.
type Runner struct {
	On bool
	// View is what its caches show; Late is the watch that shows nothing new.
	View API
	Late Kind
	// Gone are the claims that it saw go while a volume was requested.
	Gone [2]bool
	// Checked: it has looked for what refuses. Clean is how often the lists in a row had nothing left.
	Checked bool
	Clean   uint8
	// Confirmed: kube-system and Alive were read live since the last write. Permitted: the permission held then.
	Confirmed, Permitted bool
}

// Write is a write of a runner. It rests on the objects as the runner saw them.
type Write struct {
	Sent, Complete, Late, Permitted bool
	Action                          teardown.Action
	// Set and Pod name the object, Balancer the Service.
	Set           uint8
	Pod, Balancer bool
	Seen          Set
	Service       Service
	// Alive is as it was read.
	Alive Alive
}

// Left are the faults and the actions of users that are still to come.
type Left struct {
	Permits, Protects, Deletes, Expires, DeletesDefinition, Unfreezes, DeletesClaim, Retains, Labels, SetsDelete, StatusEdits,
	Strips, Aborts, Refuses uint8
	Errs, LabelsService, ChangesType, DeletesService, Backups, Restores uint8
	Crashes, Takeovers, Stalls, LateWrites, SlowCalls, ProvisionerDies  uint8
}

// State is a state of the world. It is comparable: it is its own key.
type State struct {
	API     API
	Runners [2]Runner
	// Leader is who holds the Lease.
	Leader uint8
	// Late is a write of a former leader that takes effect at any time.
	Late Write
	// Backup is a backup of etcd. Restored: one was restored amid a teardown, and nobody has confirmed since.
	Backup   API
	Restored bool
	// Asked: somebody deleted Alive.
	Asked bool
	// Broken are the rules that the last step has broken.
	Broken Rules
	Left   Left
}

// unbroken is the state without the rules that the last step has broken.
func (s State) unbroken() State {
	s.Broken = 0
	return s
}
