package csimock

import (
	"maps"
	"slices"
	"time"
)

// Record is the common part of volumes, snapshots and groups.
type Record struct {
	// ID is the handle assigned by the driver.
	ID string `json:"id"`
	// Name is the requested name; empty for a snapshot in a group.
	Name string `json:"name,omitempty"`
	// Sequence orders records by creation and is unique.
	Sequence uint64 `json:"sequence"`
}

// record returns the record embedded in a larger type.
func (r *Record) record() *Record { return r }

// Volume is one volume of the driver.
type Volume struct {
	Record
	// Capacity is the size in bytes.
	Capacity int64 `json:"capacity"`
	// Access lists the volume capabilities of the creation.
	Access []Access `json:"access"`
	// Parameters are the parameters of the creation.
	Parameters map[string]string `json:"parameters,omitempty"`
	// Mutable are the current mutable parameters.
	Mutable map[string]string `json:"mutable,omitempty"`
	// Source is the content source; the zero value is none.
	Source Source `json:"source,omitzero"`
	// Topology is the accessible topology of the volume; nil for every node.
	Topology map[string]string `json:"topology,omitempty"`
	// Published has the nodes that the controller published the volume to, by node ID.
	Published map[string]Publication `json:"published,omitempty"`
	// Staged has the staging paths of the node.
	Staged map[string]Access `json:"staged,omitempty"`
	// Targets has the target paths of the node.
	Targets map[string]Publication `json:"targets,omitempty"`
	// Health are the conditions of the volume; empty for healthy.
	Health []Condition `json:"health,omitempty"`
}

// Source is the content source of a volume: a snapshot or another volume.
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
	// Volume is the ID of the source volume, which may be deleted.
	Volume string `json:"volume"`
	// Group is the ID of the snapshot's group; empty for none.
	Group string `json:"group,omitempty"`
	// Topology is the accessible topology of the snapshot; nil for every node.
	Topology map[string]string `json:"topology,omitempty"`
	// Size is the capacity of the source volume in bytes.
	Size int64 `json:"size"`
	// Created is the creation time.
	Created time.Time `json:"created"`
}

// Group is a set of snapshots taken together.
type Group struct {
	Record
	// Volumes are the IDs of the source volumes, sorted.
	Volumes []string `json:"volumes"`
	// Snapshots are the IDs of the snapshots, in the order of Volumes.
	Snapshots []string `json:"snapshots"`
	// Parameters are the parameters of the creation.
	Parameters map[string]string `json:"parameters,omitempty"`
	// Created is the creation time of the snapshots.
	Created time.Time `json:"created"`
}

// clone returns a deep copy.
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

// clone returns a deep copy.
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

// serves reports whether the volume can be used with the access.
func (v *Volume) serves(wanted Access) bool {
	return slices.ContainsFunc(v.Access, func(a Access) bool { return a.serves(wanted) })
}
