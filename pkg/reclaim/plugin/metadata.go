package plugin

import (
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// MetadataState is what decides the finalizers and the annotation migrated-to of a volume.
type MetadataState struct {
	// Honor is the gate HonorPVReclaimPolicy.
	Honor    bool
	Origin   Origin
	Policy   storage.Policy
	Deleting bool
	// Unclaimed: the volume refers to no claim by UID, and its phase is not Bound.
	Unclaimed bool
	// InTree and External: the volume has that finalizer.
	InTree, External bool
	Migrated         MigratedTo
}

// MetadataChange is what to change on one volume. It is written in one patch, so that the
// volume always has one of the finalizers while they are exchanged.
type MetadataChange struct {
	AddInTree, RemoveInTree, RemoveExternal bool
	SetMigrated, RemoveMigrated             bool
}

// IsEmpty reports whether there is nothing to write.
func (m MetadataChange) IsEmpty() bool {
	return m == MetadataChange{}
}

// DecideMetadata returns what to change on one volume. InTree is added only where a plugin
// can remove it again, and never to a volume that is being deleted, because the API server
// refuses that.
func DecideMetadata(s MetadataState) MetadataChange {
	switch s.Origin {
	case OriginMigratedPlugin, OriginStaticMigrated:
		return MetadataChange{RemoveInTree: s.InTree, SetMigrated: s.Migrated != MigratedToDriver}
	case OriginExternal: // its provisioner is no in-tree plugin, so no driver has replaced it
		return MetadataChange{RemoveInTree: s.InTree, RemoveMigrated: s.Migrated != MigratedToNone}
	case OriginStatic: // annotations that a user wrote stay
		return MetadataChange{RemoveInTree: s.InTree && s.needsNoFinalizer()}
	case OriginPlugin, OriginMissingPlugin:
	}
	add := s.Origin == OriginPlugin && s.Policy == storage.PolicyDelete && s.Honor && !s.InTree && !s.Deleting
	return MetadataChange{
		AddInTree:      add,
		RemoveInTree:   s.InTree && (s.needsNoFinalizer() || s.Origin == OriginMissingPlugin),
		RemoveExternal: s.External && (add || s.replacesExternal()),
		RemoveMigrated: s.Migrated != MigratedToNone,
	}
}

// IsUnprotected reports whether a bound volume lacks the finalizer that keeps it until its
// in-tree plugin has deleted its data.
func (s MetadataState) IsUnprotected() bool {
	return s.Origin == OriginPlugin && s.Policy == storage.PolicyDelete && !s.InTree && !s.External
}

// replacesExternal reports whether External is not needed beside InTree, or not at all. A
// volume that is being deleted cannot get InTree: External stays until its deletion. Without
// migrated-to no provisioner reclaims a volume whose plugin is missing, or removes External.
func (s MetadataState) replacesExternal() bool {
	return s.InTree && s.Origin == OriginPlugin || s.Origin == OriginMissingPlugin || s.needsNoFinalizer()
}

// needsNoFinalizer reports whether the object can be deleted without a reclaim.
func (s MetadataState) needsNoFinalizer() bool {
	return !s.Honor || s.Policy == storage.PolicyRetain || s.Policy == storage.PolicyRecycle || s.Deleting && s.Unclaimed
}

// InitialFinalizers returns the finalizers with which a volume is created for an in-tree
// plugin, so that the volume is never without. Deletes: a plugin here can delete the volume.
func InitialFinalizers(honor bool, policy storage.Policy, deletes bool) []string {
	if deletes && DecideMetadata(MetadataState{Honor: honor, Policy: policy, Origin: OriginPlugin}).AddInTree {
		return []string{string(finalizer.InTree)}
	}
	return nil
}
