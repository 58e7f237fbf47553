package reclaim

import (
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// Origin says who made a volume and who answers for it now.
type Origin int

const (
	// Static: made by a person; no provisioned-by annotation.
	Static Origin = iota
	// ByPlugin: provisioned by an in-tree plugin that can delete it here.
	ByPlugin
	// ByMissingPlugin: provisioned by an in-tree plugin that nothing here can delete for.
	ByMissingPlugin
	// ByMigratedPlugin: provisioned by an in-tree plugin that is migrated to CSI.
	ByMigratedPlugin
	// ByExternal: provisioned under the name of an external provisioner.
	ByExternal
	// StaticMigrated: made by a person, for an in-tree plugin that is migrated to CSI.
	StaticMigrated
)

// MigratedTo is the migrated-to annotation of a volume.
type MigratedTo int

// The annotation is absent, names the driver that the plugin is migrated to, or
// anything else.
const (
	MigratedNowhere MigratedTo = iota
	MigratedRight
	MigratedWrong
)

// MarksState is what decides the marks of one volume.
type MarksState struct {
	// Honor is the gate HonorPVReclaimPolicy.
	Honor    bool
	Origin   Origin
	Policy   storage.Policy
	Deleting bool
	// Unclaimed: the volume refers to no claim by UID, and is not Bound.
	Unclaimed bool
	// InTree and External: the volume carries that finalizer.
	InTree, External bool
	Migrated         MigratedTo
}

// Marks are the changes to one volume's finalizers and migrated-to annotation.
// They are written in one patch, so that a hand-over never leaves a gap.
type Marks struct {
	AddInTree, RemoveInTree, RemoveExternal bool
	SetMigrated, ClearMigrated              bool
}

// None says whether there is nothing to write.
func (m Marks) None() bool {
	return m == Marks{}
}

// DecideMarks returns what must change on one volume (KEP-2644, "In-Tree Plugin
// volumes"). InTree stays only where a plugin here can take it off again, and is added
// never to a volume that is being deleted: the API server would refuse.
func DecideMarks(s MarksState) Marks {
	switch s.Origin {
	case ByMigratedPlugin, StaticMigrated:
		return Marks{RemoveInTree: s.InTree, SetMigrated: s.Migrated != MigratedRight}
	case ByExternal:
		return Marks{RemoveInTree: s.InTree}
	case Static: // a person's annotations stay as they are
		return Marks{RemoveInTree: s.InTree && s.needless()}
	case ByPlugin, ByMissingPlugin:
	}
	add := s.Origin == ByPlugin && s.Policy == storage.PolicyDelete && s.Honor && !s.InTree && !s.Deleting
	return Marks{
		AddInTree:    add,
		RemoveInTree: s.InTree && s.inTreeNeedless(),
		// External stays where InTree can no longer take its place, until the
		// plugin has deleted the volume.
		RemoveExternal: s.External && (add || s.InTree && s.Origin == ByPlugin || s.needless()),
		ClearMigrated:  s.Migrated != MigratedNowhere,
	}
}

// needless says whether nothing needs to be reclaimed before the object goes.
func (s MarksState) needless() bool {
	return !s.Honor || s.Policy == storage.PolicyRetain || s.Policy == storage.PolicyRecycle || s.Deleting && s.Unclaimed
}

// inTreeNeedless says whether nothing needs to be reclaimed by an in-tree plugin, or no
// plugin here could do it.
func (s MarksState) inTreeNeedless() bool {
	return s.needless() || s.Origin == ByMissingPlugin
}
