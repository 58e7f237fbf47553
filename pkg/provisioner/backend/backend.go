package backend

import (
	"context"

	v1 "k8s.io/api/core/v1"
	library "sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller"

	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/provision"
)

// Qualifier is a Backend that leaves some claims to another provisioner. It is asked before class and node of the claim
// are looked at.
type Qualifier interface {
	// Qualifies reports whether the backend serves the claim.
	Qualifies(ctx context.Context, claim *v1.PersistentVolumeClaim) (bool, error)
}

// Backend creates volumes in one storage system.
type Backend interface {
	// Name is the provisioner's name, as events and errors call it.
	Name() string
	// Prepare builds the request for the volume of a claim, and the PersistentVolume as
	// far as it is known before the call. It does not call the storage system.
	//
	// The engine sets name, claimRef, storage class, finalizer and the annotation
	// provisioned-by of the PersistentVolume. The reclaim policy is the backend's, and
	// must be set.
	//
	// Errors: a [provision.Refusal] stays until claim or class change, and is retried with
	// backoff nevertheless, as any other error is; a [provision.LeftToOther] leaves the claim
	// to another provisioner; for a [provision.UnsuitableNode] the scheduler must select another
	// node.
	Prepare(ctx context.Context, options library.ProvisionOptions) (Request, *v1.PersistentVolume, error)
	// Restore returns the request that a journal entry holds. An error means that the
	// entry is of another backend, or damaged: only an administrator can end it.
	Restore(stored journal.Request, secret *journal.Secret) (Request, error)
	// Create creates the volume of the request, or finds the volume that an earlier call
	// for the same request created. A nil failure means success.
	Create(ctx context.Context, call Call) (Answer, *Failure)
	// Shorten drops from the entry of a volume that is being discarded what its deletion
	// does not need. It is called for an entry that is too large.
	Shorten(entry journal.Entry) journal.Entry
}

// Request is what one volume is requested with. It is immutable.
type Request interface {
	// Equal reports whether both requests ask for the same volume.
	Equal(other Request) bool
	// Stored returns the journal's form of the request, and the identity of the secret
	// that it is sent with, nil for none. The content of a secret is never part of it.
	Stored() (journal.Request, *journal.Secret)
	// WithoutCredentials returns the request as it may be remembered between calls.
	WithoutCredentials() Request
}

// Call is one call of the storage system.
type Call struct {
	Request Request
	// Volume is the PersistentVolume as far as it is known. It must not be changed.
	Volume *v1.PersistentVolume
	// Unwanted: the claim is gone or wants no volume any more. The call only finds out
	// whether an earlier call created the volume.
	Unwanted bool
}

// Answer is a volume that the storage system has created.
type Answer struct {
	// Handle identifies the volume in the storage system; it must not be empty. Shown is
	// the same for logs and events, without parts of a secret.
	Handle, Shown string
	// Volume is the complete PersistentVolume, a copy.
	Volume *v1.PersistentVolume
	// Unusable is why the volume cannot serve the claim, "" if it can. The volume is
	// deleted then, if it is certainly new.
	Unusable string
	// Elsewhere is why the volume is not where it was requested, "" if it is.
	Elsewhere string
}

// Failure is a failed call.
type Failure struct {
	Err error
	// Outcome is what is known of the volume now.
	Outcome provision.Outcome
	// Infeasible: the same request gets the same error. It is repeated after the longest
	// backoff.
	Infeasible bool
	// NodeUnfit: the volume cannot be created for the selected node; the scheduler must
	// select another one.
	NodeUnfit bool
	// Ignored: the provisioner leaves the claim to another provisioner. There is no event;
	// the claim is retried after the longest backoff.
	Ignored bool
	// Unresolved is why repeating the request cannot tell whether there is a volume, "" if
	// it may.
	Unresolved string
}

// Deleter deletes volumes in one storage system, and tells their disks apart: deleting
// one of two PersistentVolumes with one disk would destroy the data of the other.
type Deleter interface {
	// Name is the provisioner's name, as errors call it.
	Name() string
	// HandleOf returns what identifies the volume's disk in the storage system, "" for a
	// volume of another one.
	HandleOf(volume *v1.PersistentVolume) string
	// Keys returns the index keys of the volume's disk. Two volumes with one disk have a
	// key in common.
	Keys(volume *v1.PersistentVolume) []string
	// Same reports whether the two volumes stand for one disk.
	Same(a, b *v1.PersistentVolume) bool
	// PrepareDelete reads all that the deletion of the volume needs, such as secrets, and returns
	// the call of the storage system. Both return an [Ignored] if the deletion is left to
	// another program.
	PrepareDelete(ctx context.Context, volume *v1.PersistentVolume) (DeleteCall, error)
	// PrepareDiscard is PrepareDelete for a volume that no PersistentVolume records, with the
	// handle of its [Answer].
	PrepareDiscard(ctx context.Context, volume *v1.PersistentVolume, handle string) (DeleteCall, error)
}

// Nested is a Deleter whose disks may be inside one another, such as directories.
type Nested interface {
	// Enclosing returns the index keys of all disks that may have the volume's disk inside.
	Enclosing(volume *v1.PersistentVolume) []string
	// Inside reports whether deleting the disk of the other volume deletes that of the volume.
	Inside(volume, other *v1.PersistentVolume) bool
}

// DeleteCall deletes one volume in the storage system, with one call and without a request to
// the API server: the volume is read live right before it. It returns nil if the volume no
// longer exists in the storage system.
type DeleteCall func(ctx context.Context) error

// SecretMissing is the error of a deletion that waits for a secret.
type SecretMissing struct {
	// Secret is namespace/name of the secret.
	Secret string
	// Sentence says what ends the wait.
	Sentence string
}

// Error returns the sentence.
func (s *SecretMissing) Error() string { return s.Sentence }

// Ignored is why a Deleter leaves a volume to another program. There is no event; the
// deletion is retried after the longest backoff.
type Ignored struct {
	Reason string
}

// Error returns the reason.
func (i *Ignored) Error() string { return "ignored because " + i.Reason }
