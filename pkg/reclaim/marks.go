package reclaim

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
	Policy   Policy
	Deleting bool
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
// volumes"). InTree is added only where a plugin can take it off again, and
// never to a volume that is being deleted: the API server would refuse.
func DecideMarks(s MarksState) Marks {
	var m Marks
	switch s.Origin {
	case ByMigratedPlugin, StaticMigrated:
		m.RemoveInTree = s.InTree
		m.SetMigrated = s.Migrated != MigratedRight
		return m
	case ByExternal:
		m.RemoveInTree = s.InTree
		return m
	case ByPlugin, ByMissingPlugin:
		m.ClearMigrated = s.Migrated != MigratedNowhere
	case Static: // a person's annotations stay as they are
	}
	wanted := s.Honor && s.Policy == Delete && s.Origin == ByPlugin
	m.AddInTree = wanted && !s.InTree && !s.Deleting
	m.RemoveInTree = s.InTree && (!s.Honor || s.Policy == Retain || s.Policy == Recycle)
	m.RemoveExternal = wanted && s.External
	return m
}
