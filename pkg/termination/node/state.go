package node

import "github.com/exeunt-io/exeunt/internal/enum"

// Owner is who may end the node.
type Owner int

const (
	// Unserved: node-terminator does not end the node. It has no label, an invalid one, or is part of the control plane.
	Unserved Owner = iota
	// Ours: the node has the label.
	Ours
	// Others: Karpenter, or another program with its API, has a claim of the node.
	Others
	// Unreadable: NodeClaims cannot be read, so the node may be that of others.
	Unreadable
)

// String returns the name of the value.
func (o Owner) String() string { return enum.Name(o, "Unserved", "Ours", "Others", "Unreadable") }

// Provider is what can be done to the machine.
type Provider int

const (
	// NoProvider: nothing. The Node goes, and the machine runs on.
	NoProvider Provider = iota
	// Manual: an administrator turns the machine off, and sets the taint out-of-service.
	Manual
	// Socket: a program beside ours answers Get, Stop and Delete.
	Socket
)

// String returns the name of the value.
func (p Provider) String() string { return enum.Name(p, "NoProvider", "Manual", "Socket") }

// Pods is which pods of the node are left.
type Pods int

const (
	// NoPods: none, or only pods that go with the Node.
	NoPods Pods = iota
	// Kept: what the API server does not let go, because of a finalizer or a refusal.
	Kept
	// Finished: pods whose containers ended. Nobody waits for them; after the proof they are removed.
	Finished
	// Stuck: pods that nobody waits for, and whose containers may run: the kubelet does not end them. While the Node is
	// there, nobody else runs them; after the proof they are removed.
	Stuck
	// Awaited: pods that are being ended.
	Awaited
)

// String returns the name of the value.
func (p Pods) String() string { return enum.Name(p, "NoPods", "Kept", "Finished", "Stuck", "Awaited") }

// Volumes is what is attached to the node.
type Volumes int

const (
	// Detached: nothing.
	Detached Volumes = iota
	// Detaching: the detachment of each attached volume began.
	Detaching
	// Stranded: only volumes whose pods nobody waits for.
	Stranded
	// Attached: volumes that are being used or detached.
	Attached
)

// String returns the name of the value.
func (v Volumes) String() string {
	return enum.Name(v, "Detached", "Detaching", "Stranded", "Attached")
}

// Instance is what the provider last said of the machine.
type Instance int

const (
	// Unknown: nothing yet, or its answer failed.
	Unknown Instance = iota
	// Running: the machine runs.
	Running
	// Stopping: the machine is being stopped or deleted.
	Stopping
	// Off: the machine is off.
	Off
	// Gone: the machine does not exist any more. It was seen before.
	Gone
	// Unseen: the provider does not know the machine, and never did: the account or the ID may be wrong.
	Unseen
	// Foreign: the machine lacks the tag of this cluster.
	Foreign
	// Shared: another Node has the same providerID.
	Shared
)

// String returns the name of the value.
func (i Instance) String() string {
	return enum.Name(i, "Unknown", "Running", "Stopping", "Off", "Gone", "Unseen", "Foreign", "Shared")
}

// Proof is how far it is proven that the machine is off.
type Proof int

const (
	// NoProof: nothing says that the machine is off.
	NoProof Proof = iota
	// Begun: the provider, or the taint of an administrator, says so. A second answer, or the silence of the kubelet, is missing.
	Begun
	// Given: the machine is off.
	Given
	// Revoked: the machine was proven to be off, and its kubelet renewed the Lease since.
	Revoked
)

// String returns the name of the value.
func (p Proof) String() string { return enum.Name(p, "NoProof", "Begun", "Given", "Revoked") }

// State is what a decision about one node rests on.
type State struct {
	Owner    Owner
	Provider Provider
	Pods     Pods
	Volumes  Volumes
	Instance Instance
	Proof    Proof
	// Deleting: the Node is being deleted.
	Deleting bool
	// Protected: the Node has our finalizer.
	Protected bool
	// Begun: the first action was written: deadline, taint and the rest.
	Begun bool
	// Silent: the kubelet did not renew its Lease for the duration of the Lease.
	Silent bool
	// Ended: E has come.
	Ended bool
	// Settled: no new pod appeared for a while.
	Settled bool
	// NoStop: the provider cannot stop the machine and keep its disks.
	NoStop bool
	// Marked: the Node has our taint out-of-service.
	Marked bool
	// Deleted: the provider took the request to delete the machine. NoDelete: it does not delete machines.
	Deleted, NoDelete bool
}

// drained reports whether nothing of the node is awaited any more.
func (s State) drained() bool {
	return s.Settled && s.Pods != Awaited && (s.Volumes == Detached || s.Volumes == Stranded)
}

// unidentified reports whether it is not known which machine is the node's.
func (s State) unidentified() bool {
	return s.Instance == Unseen || s.Instance == Foreign || s.Instance == Shared
}
