// Package check decides whether what happened in a cluster was safe, and whether what is
// left once nothing moves any more is as it should be. The model, the random test of the
// model and the soak test of real programs use the same rules.
//
//	[Broken]   what one step broke: data lost, a disk forgotten, a finalizer of others changed
//	[AtRest]   what must not remain once every program has done all it can
//	[History]  the record of a real run, replayed through Broken and AtRest
//
// Each [Rule] names its source. The package does no I/O and knows no clock.
//
// A disk is known by the volume handle of a CSI source, or by the path of a host-path
// source. Handles of migrated plugins and snapshots are not checked.
package check

import (
	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/journal"
)

// Snapshot is what exists at one moment. Its objects are read-only.
type Snapshot struct {
	Volumes []*v1.PersistentVolume
	Claims  []*v1.PersistentVolumeClaim
	Pods    []*v1.Pod
	// Entries are the journal entries, of active and of unresolved Leases.
	Entries []journal.Entry
	// Attached are the names of volumes that a VolumeAttachment names.
	Attached []string
	// Disks are the volumes in the storage system.
	Disks []Disk
	// Calls are the calls that the storage system may still carry out.
	Calls []Call
	// Deleted are handles of disks that DeleteVolume deleted.
	Deleted []string
	// Kept are handles of disks that users keep without a PersistentVolume. [Kept] returns
	// them for a step.
	Kept []string
	// Filled are handles of disks that were there before etcd was restored from a backup.
	Filled []string
	// GivenUp are handles of disks that need no record any more: a user removed a finalizer
	// or edited a claim, or the storage system reported a deletion or a creation that did not
	// happen, or denied a creation that did.
	GivenUp []string

	// places are the Leases of the entries, for [History].
	places []objectKey
}

// Disk is a volume in the storage system.
type Disk struct {
	// Handle is the volume ID of the driver.
	Handle string
	// Name is the name that it was requested with.
	Name string
}

// Call is a call that the storage system may still carry out.
type Call struct {
	// Kind is CreateVolume or DeleteVolume.
	Kind Kind
	// Handle is the volume ID of a DeleteVolume, Name the requested name of a CreateVolume.
	Handle, Name string
	// Awaited: the caller still waits for the answer.
	Awaited bool
}

// Kind is what a Step does.
type Kind uint8

// The kinds of steps.
const (
	// Write: an API object was written.
	Write Kind = iota
	// CreateVolume and DeleteVolume: a call had an effect in the storage system, or was
	// repeated without one.
	CreateVolume
	DeleteVolume
	// Crash: a program ended, and awaits no call any more.
	Crash
)

// Actor is who took a Step.
type Actor string

// Programs. Any other actor is a user or an unknown program; what it writes breaks no rule.
const (
	PVController Actor = "pv-controller"
	Provisioner  Actor = "provisioner"
	// UpstreamLoops and UpstreamProvisioner are the programs that ours replace.
	UpstreamLoops       Actor = "kube-controller-manager"
	UpstreamProvisioner Actor = "csi-provisioner"
)

// isOurs reports whether the actor is a program of this project.
func (a Actor) isOurs() bool { return a == PVController || a == Provisioner }

// isProgram reports whether the actor is a known program.
func (a Actor) isProgram() bool {
	return a.isOurs() || a == UpstreamLoops || a == UpstreamProvisioner
}

// runsLoops reports whether the actor binds and releases volumes.
func (a Actor) runsLoops() bool { return a == PVController || a == UpstreamLoops }

// Step is one effect of one actor.
type Step struct {
	Actor Actor
	Kind  Kind
	// Handle is the volume ID of a DeleteVolume, Name the requested name of a CreateVolume.
	Handle, Name string
	// Since is the cluster at the actor's last live read before the step, nil for the
	// cluster before the step. A live read and the step that rests on it are not atomic:
	// the step is wrong only if it was wrong at both moments.
	Since *Snapshot
	// Honor is the gate HonorPVReclaimPolicy of the actor, Journaled its gate
	// ProvisioningJournal.
	Honor, Journaled bool
	// Faultless: nothing failed and no program ended until now, so no call has a reason to
	// be repeated.
	Faultless bool
	// Unchanged: the API server accepted a write that changed nothing.
	Unchanged bool
}

// Violation is a broken rule.
type Violation struct {
	Rule Rule
	// Object is the object of the rule, such as "PersistentVolume pv-1" or "disk handle-1".
	Object string
	// Sentence says what happened.
	Sentence string
}

// String returns the violation as one line.
func (v Violation) String() string { return v.Rule.String() + ": " + v.Sentence }
