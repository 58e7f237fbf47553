package protection

import (
	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/internal/enum"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// NeededSource returns the claim or snapshot that has to exist until the claim has its
// volume. The kind is SourceNone if the claim has a volume, starts with an empty one, or
// is filled by a volume populator.
func NeededSource(claim *v1.PersistentVolumeClaim) storage.DataSource {
	if claim.Status.Phase != v1.ClaimPending && claim.Status.Phase != "" {
		return storage.DataSource{}
	}
	return SourceOf(claim)
}

// SourceOf returns the claim or snapshot that the claim's volume is or was filled from.
func SourceOf(claim *v1.PersistentVolumeClaim) storage.DataSource {
	for _, ref := range storage.DataSourceRefs(claim) {
		if source := storage.DataSourceOf(ref); source.Kind == storage.SourceClaim || source.Kind == storage.SourceSnapshot {
			return source
		}
	}
	return storage.DataSource{}
}

// CloneSourceState is the state of a claim that other claims are cloned from.
type CloneSourceState struct {
	// Deleting: the source has a deletion timestamp.
	Deleting bool
	// Protected: the source has the finalizer.
	Protected bool
	// Needed: a claim that waits for its volume is a clone of the source.
	Needed bool
}

// IsUnneededCloneSource reports whether the finalizer can be removed. The source and its
// clones are in one cache: once the cache shows the deletion of the source, it shows every
// clone that was created before.
func IsUnneededCloneSource(s CloneSourceState) bool {
	return s.Deleting && s.Protected && !s.Needed
}

// SnapshotAction is the next step for one snapshot.
type SnapshotAction int

const (
	// KeepSnapshot changes nothing.
	KeepSnapshot SnapshotAction = iota
	// ConfirmSnapshot lists the claims from the API server and decides again.
	ConfirmSnapshot
	// UnprotectSnapshot removes the finalizer.
	UnprotectSnapshot
)

// String returns the name of the value.
func (a SnapshotAction) String() string {
	return enum.Name(a, "KeepSnapshot", "ConfirmSnapshot", "UnprotectSnapshot")
}

// SnapshotState is the state of a snapshot that volumes are restored from.
type SnapshotState struct {
	// Protected: the snapshot has the finalizer.
	Protected bool
	// Needed: a claim that waits for its volume is restored from the snapshot.
	Needed bool
	// Confirmed: the claims were read from the API server, not from a cache.
	Confirmed bool
}

// DecideSnapshot returns the next step for one snapshot. Snapshots and claims come by
// different watches, so the claims are listed live before the finalizer is removed.
func DecideSnapshot(s SnapshotState) SnapshotAction {
	switch {
	case !s.Protected || s.Needed:
		return KeepSnapshot
	case !s.Confirmed:
		return ConfirmSnapshot
	}
	return UnprotectSnapshot
}
