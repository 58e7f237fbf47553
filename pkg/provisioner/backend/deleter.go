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
	// Delete deletes the volume in the storage system. It returns nil if the volume no
	// longer exists there, and an [Ignored] if the deletion is left to another program.
	Delete(ctx context.Context, volume *v1.PersistentVolume) error
	// Discard deletes a volume that no PersistentVolume records, by the handle of its
	// [Answer].
	Discard(ctx context.Context, volume *v1.PersistentVolume, handle string) error
}

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
// deletion is tried again after the longest backoff.
type Ignored struct {
	Reason string
}

// Error returns the reason.
func (i *Ignored) Error() string { return "ignored because " + i.Reason }
