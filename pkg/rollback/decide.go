package rollback

import (
	"github.com/exeunt-io/exeunt/internal/enum"
	"github.com/exeunt-io/exeunt/pkg/reclaim"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// AnnotationState is the observed state of an annotation exeunt.io/* and its object.
type AnnotationState struct {
	// Known: this version knows the annotation.
	Known  bool
	Server Server
	// Status, Policy and Deleting are those of a volume with the annotation exeunt.io/reclaim.
	Status reclaim.Status
	Policy storage.Policy
	// Deleting: the volume has a deletion timestamp.
	Deleting bool
	// Abandoned: the administrator gives up the disk of this volume.
	Abandoned bool
}

// awaitsDisk reports whether only the provisioner of Exeunt deletes the disk of the volume.
func (s AnnotationState) awaitsDisk() bool {
	return s.Status == reclaim.StatusPending && s.Deleting && (s.Policy == storage.PolicyDelete ||
		s.Policy == storage.PolicyUnknown)
}

// DecideAnnotation decides about one annotation. It is total and pure.
func DecideAnnotation(s AnnotationState) Decision {
	switch {
	case !s.Known:
		return Decision{Refuse, LaterVersion}
	case s.Server == ServerExeunt && s.awaitsDisk():
		return Decision{Wait, DeletionOpen}
	case !s.Server.Ended():
		return waitFor(s.Server)
	case s.awaitsDisk() && s.Abandoned:
		return Decision{Remove, DiskAbandoned}
	case s.awaitsDisk():
		return Decision{Refuse, DiskWouldLeak}
	}
	return Decision{Remove, Unneeded}
}

// DecideUnneeded decides about an object that no program reads once that of Exeunt has ended.
func DecideUnneeded(server Server) Decision {
	if !server.Ended() {
		return waitFor(server)
	}
	return Decision{Remove, Unneeded}
}

// waitFor waits until the program of Exeunt has ended, or was seen to have ended.
func waitFor(server Server) Decision {
	if server == ServerExeunt {
		return Decision{Wait, ExeuntServes}
	}
	return Decision{Wait, ServerNotSeen}
}

// JournalState is the observed state of a Lease of the journal.
type JournalState struct {
	Server Server
	// Pods tells whether a pod of the provisioner may lead again, also while another program leads.
	Pods Pods
	// Active: the Lease has entries that a running provisioner works on.
	Active bool
	// Unresolved: the Lease has entries that only an administrator can end.
	Unresolved bool
	// Named: the administrator says that the provisioner has ended for good.
	Named bool
}

// DecideJournal decides about a Lease of the journal. Nothing is removed while the
// provisioner of Exeunt may still run, or one of its pods is there.
func DecideJournal(s JournalState) Decision {
	switch {
	case s.Server == ServerExeunt && s.Active:
		return Decision{Wait, EntriesOpen}
	case !s.Server.Ended():
		return waitFor(s.Server)
	case s.Pods == PodsPresent:
		return Decision{Wait, PodStandsBy}
	case s.Active && s.Server == ServerNone && !s.Named:
		return Decision{Wait, EntriesInterrupted}
	case s.Active || s.Unresolved:
		return Decision{SaveAndRemove, EntriesLeft}
	}
	return Decision{Remove, Unneeded}
}

// Remover tells whether a program was seen that removes a finalizer of upstream's.
type Remover int

const (
	// RemoverUnseen: it could not be read.
	RemoverUnseen Remover = iota
	// RemoverAbsent: everything was read, and no program was seen.
	RemoverAbsent
	// RemoverPresent: a program was seen.
	RemoverPresent
)

// String returns the name of the value.
func (r Remover) String() string { return enum.Name(r, "unseen", "absent", "present") }

// SharedFinalizerState is the observed state of a finalizer that programs of Exeunt and of
// upstream remove, and of its volume.
type SharedFinalizerState struct {
	Remover Remover
	// Named: the administrator says that nobody will remove the finalizer.
	Named bool
	// InUse: the finalizer protects a volume that is bound.
	InUse bool
}

// DecideSharedFinalizer decides about a finalizer that upstream's programs remove as well.
func DecideSharedFinalizer(s SharedFinalizerState) Decision {
	switch {
	case !s.Named:
		return Decision{Keep, UpstreamRemoves}
	case s.InUse:
		return Decision{Keep, ClaimUsesVolume}
	case s.Remover == RemoverPresent:
		return Decision{Refuse, RemoverSeen}
	case s.Remover == RemoverAbsent:
		return Decision{Remove, NobodyServes}
	}
	return Decision{Refuse, RemoverNotRead}
}

// NodeState is the observed state of a Node or NodeClaim with the finalizer or an annotation of node-terminator.
type NodeState struct {
	// Terminating: the Node or its claim is being deleted.
	Terminating bool
	// OthersTerminate: another node is.
	OthersTerminate bool
	// Led: node-terminator runs.
	Led bool
}

// DecideNode decides about a Node or a NodeClaim. A node that is being deleted keeps the finalizer: the Node would go
// before its pods and disks are free. While one is, node-terminator is not stopped, for its deadline may come.
func DecideNode(s NodeState) Decision {
	switch {
	case s.Terminating:
		return Decision{Wait, NodeTerminates}
	case s.Led && s.OthersTerminate:
		return Decision{Wait, OthersTerminate}
	}
	return Decision{Remove, Unneeded}
}
