package protection

import (
	"github.com/exeunt-io/exeunt/pkg/storage"

	v1 "k8s.io/api/core/v1"
)

// NeededSource returns the claim or snapshot that has to stay until the claim has its
// volume. Its kind is SourceNone if the claim has a volume, or starts empty, or is
// filled by a populator.
func NeededSource(claim *v1.PersistentVolumeClaim) storage.DataSource {
	if claim.Status.Phase != v1.ClaimPending && claim.Status.Phase != "" {
		return storage.DataSource{}
	}
	for _, ref := range storage.DataSourceRefs(claim) {
		if source := storage.DataSourceOf(ref); source.Kind == storage.SourceClaim || source.Kind == storage.SourceSnapshot {
			return source
		}
	}
	return storage.DataSource{}
}

// SourceState is what is known of a claim or a snapshot that volumes are made from.
type SourceState struct {
	// Deleting: the source has a deletion timestamp.
	Deleting bool
	// Protected: the source carries the finalizer.
	Protected bool
	// Needed: a claim that waits for its volume names the source.
	Needed bool
	// Confirmed: Needed comes from the API server, not from a cache.
	Confirmed bool
}

// DecideCloneSource returns the next step for a claim that others are cloned from.
// The source and its clones are in one cache: as it knows that the source is being
// deleted, it knows every clone that was asked for before.
func DecideCloneSource(s SourceState) Action {
	if s.Deleting && s.Protected && !s.Needed {
		return Unprotect
	}
	return Wait
}

// DecideSnapshotSource returns the next step for a snapshot. It comes from another
// watch than the claims do, so these are looked at live before it is let go.
func DecideSnapshotSource(s SourceState) Action {
	switch {
	case !s.Protected || s.Needed:
		return Wait
	case !s.Confirmed:
		return Confirm
	}
	return Unprotect
}
