package csimock

import (
	"maps"
	"slices"
	"time"
)

// Record is what volumes, snapshots and groups have in common.
type Record struct {
	// ID is the handle the driver gave.
	ID string `json:"id"`
	// Name is the one the caller asked for; empty for a snapshot in a group.
	Name string `json:"name,omitempty"`
	// Sequence orders records by their creation and is never used twice.
	Sequence uint64 `json:"sequence"`
}

// record gives the catalog access to the Record inside a larger type.
func (r *Record) record() *Record { return r }

// Volume is one volume of the driver.
type Volume struct {
	Record
	// Capacity is the size in bytes.
	Capacity int64 `json:"capacity"`
	// Access is what the volume was made for.
	Access []Access `json:"access"`
	// Parameters are those of its creation.
	Parameters map[string]string `json:"parameters,omitempty"`
	// Mutable are its mutable parameters as they are now.
	Mutable map[string]string `json:"mutable,omitempty"`
	// Source is what the volume was made from; the zero value is nothing.
	Source Source `json:"source,omitzero"`
	// Topology is where the volume is accessible from; nil is everywhere.
	Topology map[string]string `json:"topology,omitempty"`
	// Published is where the controller published the volume, by node ID.
	Published map[string]Publication `json:"published,omitempty"`
	// Staged is where the node staged the volume, by staging path.
	Staged map[string]Access `json:"staged,omitempty"`
	// Targets is where the node published the volume, by target path.
	Targets map[string]Publication `json:"targets,omitempty"`
	// Health are its conditions; empty is healthy.
	Health []Condition `json:"health,omitempty"`
}

// Source is the content a volume began with: a snapshot's, or another volume's.
type Source struct {
	Snapshot string `json:"snapshot,omitempty"`
	Volume   string `json:"volume,omitempty"`
}

// Publication is how a volume is published at a node or a target path.
type Publication struct {
	Access
	ReadOnly bool `json:"readOnly,omitempty"`
}

// Snapshot is one snapshot of a volume, ready to use as soon as it exists.
type Snapshot struct {
	Record
	// Volume is the ID of the source volume, which may be gone by now.
	Volume string `json:"volume"`
	// Group is the ID of the group it was taken with; empty if it stands alone.
	Group string `json:"group,omitempty"`
	// Topology is where the snapshot is usable from; nil is everywhere.
	Topology map[string]string `json:"topology,omitempty"`
	// Size is the capacity of the source volume in bytes.
	Size int64 `json:"size"`
	// Created is when the snapshot was taken.
	Created time.Time `json:"created"`
}

// Group is a set of snapshots taken together.
type Group struct {
	Record
	// Volumes are the IDs of the source volumes, sorted.
	Volumes []string `json:"volumes"`
	// Snapshots are the IDs of the snapshots, in the order of Volumes.
	Snapshots []string `json:"snapshots"`
	// Parameters are those of its creation.
	Parameters map[string]string `json:"parameters,omitempty"`
	// Created is when the snapshots were taken.
	Created time.Time `json:"created"`
}

// clone returns a copy that shares nothing with the original.
func (v *Volume) clone() Volume {
	c := *v
	c.Access = slices.Clone(v.Access)
	c.Parameters = maps.Clone(v.Parameters)
	c.Mutable = maps.Clone(v.Mutable)
	c.Topology = maps.Clone(v.Topology)
	c.Published = maps.Clone(v.Published)
	c.Staged = maps.Clone(v.Staged)
	c.Targets = maps.Clone(v.Targets)
	c.Health = slices.Clone(v.Health)
	return c
}

// clone returns a copy that shares nothing with the original.
func (s *Snapshot) clone() Snapshot {
	c := *s
	c.Topology = maps.Clone(s.Topology)
	return c
}

// inUse reports whether the volume is published or staged anywhere.
func (v *Volume) inUse() bool {
	return len(v.Published)+len(v.Staged)+len(v.Targets) > 0
}

// nodes returns the IDs of the nodes that the volume is published to, sorted.
func (v *Volume) nodes() []string {
	return slices.Sorted(maps.Keys(v.Published))
}

// serves reports whether the volume can be used as wanted.
func (v *Volume) serves(wanted Access) bool {
	return slices.ContainsFunc(v.Access, func(a Access) bool { return a.serves(wanted) })
}
