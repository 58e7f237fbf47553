package backend

import (
	"context"

	v1 "k8s.io/api/core/v1"
)

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
