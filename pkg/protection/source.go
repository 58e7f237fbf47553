package protection

import (
	"cmp"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// SourceKind is what a volume can be made from.
type SourceKind string

const (
	// NoSource: the volume begins empty, or with what neither kind below is.
	NoSource SourceKind = ""
	// ClaimSource: the volume is a clone of a claim's.
	ClaimSource SourceKind = "PersistentVolumeClaim"
	// SnapshotSource: the volume is made from a VolumeSnapshot.
	SnapshotSource SourceKind = "VolumeSnapshot"
)

// snapshotGroup is the API group of snapshots.
const snapshotGroup = "snapshot.storage.k8s.io"

// Source names the object that a volume is made from.
type Source struct {
	Kind            SourceKind
	Namespace, Name string
}

// NeededSource is the object that has to stay until the claim has its volume; its
// kind is NoSource if the claim has one, or was made from nothing.
func NeededSource(claim *v1.PersistentVolumeClaim) Source {
	if claim.Status.Phase != v1.ClaimPending && claim.Status.Phase != "" {
		return Source{}
	}
	if from := claim.Spec.DataSource; from != nil {
		if kind := sourceKind(from.Kind, from.APIGroup); kind != NoSource {
			return Source{Kind: kind, Namespace: claim.Namespace, Name: from.Name}
		}
	}
	if from := claim.Spec.DataSourceRef; from != nil {
		if kind := sourceKind(from.Kind, from.APIGroup); kind != NoSource {
			return Source{Kind: kind, Namespace: cmp.Or(ptr.Deref(from.Namespace, ""), claim.Namespace), Name: from.Name}
		}
	}
	return Source{}
}

func sourceKind(kind string, group *string) SourceKind {
	switch {
	case kind == string(ClaimSource) && ptr.Deref(group, "") == "":
		return ClaimSource
	case kind == string(SnapshotSource) && cmp.Or(ptr.Deref(group, ""), snapshotGroup) == snapshotGroup:
		return SnapshotSource
	}
	return NoSource
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
