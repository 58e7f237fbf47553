package csimock

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Capability is a part of the driver that can be switched off. The driver does not
// advertise a capability that is off, and its RPCs return Unimplemented.
type Capability string

// The capabilities, under the names that ParseCapabilities understands.
const (
	// CreateDelete is CreateVolume and DeleteVolume.
	CreateDelete Capability = "create-delete"
	// List is ListVolumes, and ListSnapshots if Snapshots is on too.
	List Capability = "list"
	// Capacity is GetCapacity.
	Capacity Capability = "capacity"
	// Snapshots is CreateSnapshot, DeleteSnapshot and volumes restored from snapshots. It
	// needs CreateDelete.
	Snapshots Capability = "snapshots"
	// GroupSnapshots is the GroupController service. It needs Snapshots.
	GroupSnapshots Capability = "group-snapshots"
	// Clones is volumes cloned from another volume. It needs CreateDelete.
	Clones Capability = "clones"
	// Expansion is ControllerExpandVolume and NodeExpandVolume, online.
	Expansion Capability = "expansion"
	// Modify is ControllerModifyVolume and mutable parameters at creation.
	Modify Capability = "modify"
	// Publish is ControllerPublishVolume and ControllerUnpublishVolume.
	Publish Capability = "publish"
	// Topology is accessibility requirements, and the topology of the node.
	Topology Capability = "topology"
	// SnapshotTopology is accessibility requirements of snapshots. Restored volumes then
	// have the topology of their snapshot. It needs Snapshots and Topology.
	SnapshotTopology Capability = "snapshot-topology"
	// Get is ControllerGetVolume, and GetSnapshot if Snapshots is on too.
	Get Capability = "get"
	// Health is ControllerGetVolumeHealth, NodeGetVolumeHealth and
	// NodeGetStorageHealth, and ControllerListVolumeHealth if List is on too.
	Health Capability = "health"
	// Stage is NodeStageVolume and NodeUnstageVolume.
	Stage Capability = "stage"
	// Stats is NodeGetVolumeStats.
	Stats Capability = "stats"
	// SingleWriter is the access modes SINGLE_NODE_SINGLE_WRITER and
	// SINGLE_NODE_MULTI_WRITER.
	SingleWriter Capability = "single-writer"
	// MountGroup is a group identifier for mounted volumes.
	MountGroup Capability = "mount-group"
)

// knownCapabilities lists every capability in the order of the help text.
var knownCapabilities = []Capability{
	CreateDelete, List, Capacity, Snapshots, GroupSnapshots, Clones, Expansion, Modify,
	Publish, Topology, SnapshotTopology, Get, Health, Stage, Stats, SingleWriter, MountGroup,
}

// prerequisites lists the capabilities that a capability needs: without them it is off.
var prerequisites = map[Capability][]Capability{
	Snapshots:        {CreateDelete},
	GroupSnapshots:   {Snapshots},
	SnapshotTopology: {Snapshots, Topology},
	Clones:           {CreateDelete},
}

// Capabilities is a set of capabilities. Its methods do not change the receiver.
type Capabilities map[Capability]struct{}

// AllCapabilities returns the set with every capability on.
func AllCapabilities() Capabilities {
	return Capabilities{}.With(knownCapabilities...)
}

// DefaultCapabilities returns every capability except Topology, Publish and
// SnapshotTopology: these need a node plugin on each node, an attacher, and a client of the
// alpha feature.
func DefaultCapabilities() Capabilities {
	return AllCapabilities().Without(Topology, Publish, SnapshotTopology)
}

// With returns the set with the given capabilities on.
func (s Capabilities) With(on ...Capability) Capabilities {
	changed := make(Capabilities, len(s)+len(on))
	maps.Copy(changed, s)
	for _, c := range on {
		changed[c] = struct{}{}
	}
	return changed
}

// Without returns the set with the given capabilities off.
func (s Capabilities) Without(off ...Capability) Capabilities {
	changed := s.With()
	for _, c := range off {
		delete(changed, c)
	}
	return changed
}

// Has reports whether c and its prerequisites are on.
func (s Capabilities) Has(c Capability) bool {
	if _, on := s[c]; !on {
		return false
	}
	return s.hasAll(prerequisites[c])
}

// hasAll reports whether each of the given capabilities is on.
func (s Capabilities) hasAll(needed []Capability) bool {
	return !slices.ContainsFunc(needed, func(c Capability) bool { return !s.Has(c) })
}

// validate refuses unknown capabilities.
func (s Capabilities) validate() error {
	names := make([]string, 0, len(s))
	for c := range s {
		names = append(names, string(c))
	}
	slices.Sort(names)
	_, err := ParseCapabilities(names)
	return err
}

// CapabilityNames returns the names of all capabilities.
func CapabilityNames() []string {
	names := make([]string, 0, len(knownCapabilities))
	for _, c := range knownCapabilities {
		names = append(names, string(c))
	}
	return names
}

// ParseCapabilities returns the capabilities with the names. The error for an unknown name
// lists the known names.
func ParseCapabilities(names []string) ([]Capability, error) {
	parsed := make([]Capability, 0, len(names))
	for _, name := range names {
		c := Capability(strings.TrimSpace(name))
		if !slices.Contains(knownCapabilities, c) {
			return nil, fmt.Errorf("unknown capability %q, known are %s", name, strings.Join(CapabilityNames(), ", "))
		}
		parsed = append(parsed, c)
	}
	return parsed, nil
}
