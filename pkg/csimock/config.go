package csimock

import (
	"errors"
	"fmt"
	"regexp"
)

// Defaults of empty fields of Config.
const (
	DefaultName     = "csimock.exeunt.io"
	DefaultNodeID   = "csimock-node"
	DefaultCapacity = int64(1) << 40 // bytes: 1 TiB
)

// maxNodeIDBytes is the limit that NodeGetInfoResponse.node_id has in CSI.
const maxNodeIDBytes = 256

// driverName is the format of GetPluginInfoResponse.name in CSI.
var driverName = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9.-]{0,61}[a-zA-Z0-9])?$`)

// Config describes a driver. The zero value is a usable driver.
type Config struct {
	// Name is the name the driver reports; DefaultName if empty.
	Name string
	// NodeID names the node whose Node service this is; DefaultNodeID if empty.
	NodeID string
	// OtherNodes are further nodes that volumes can be published to.
	OtherNodes []string
	// MaxVolumesPerNode limits how many volumes can be published to one node;
	// 0 is no limit.
	MaxVolumesPerNode int64
	// Capabilities are the capabilities of the driver; nil for DefaultCapabilities().
	Capabilities Capabilities
	// Capacity is the size of the pool in bytes; DefaultCapacity if 0.
	Capacity int64
	// Topologies are the topologies of volumes, each a map of segments. The first is the
	// topology of this node. The default with Topology on is {"csimock/zone": "local"}.
	Topologies []map[string]string
	// MutableParameters are the keys that ControllerModifyVolume accepts; "iops" and
	// "throughput" if empty.
	MutableParameters []string
	// Secrets are required in every request with a field for secrets; empty requires none.
	Secrets map[string]string
	// StateFile keeps the volumes across restarts; empty for memory only.
	StateFile string
	// Volumes is the number of volumes of 1 MiB that the driver starts with, named
	// volume-000001 and so on, in addition to those of the state file.
	Volumes int
	// CallLog is a file with one JSON line per finished call; empty for none.
	CallLog string
	// Faults apply from the start.
	Faults []Fault
	// Health are conditions of the storage backend and of volumes. A condition of a volume
	// that does not exist yet applies once a volume with the name is created.
	Health []HealthEntry
	// FaultApplied, if set, is called when a fault starts to apply to a call.
	FaultApplied func(Fault)
	// CallFinished, if set, is called when a call is finished and logged, before the
	// response is sent.
	CallFinished func(Call)
}

// withDefaults returns the configuration with defaults for empty fields.
func (c Config) withDefaults() Config {
	if c.Name == "" {
		c.Name = DefaultName
	}
	if c.NodeID == "" {
		c.NodeID = DefaultNodeID
	}
	if c.Capabilities == nil {
		c.Capabilities = DefaultCapabilities()
	}
	if c.Capacity == 0 {
		c.Capacity = DefaultCapacity
	}
	if len(c.MutableParameters) == 0 {
		c.MutableParameters = []string{"iops", "throughput"}
	}
	if len(c.Topologies) == 0 && c.Capabilities.Has(Topology) {
		c.Topologies = []map[string]string{{"csimock/zone": "local"}}
	}
	return c
}

// validate refuses values that CSI does not allow a driver to report.
func (c Config) validate() error {
	if !driverName.MatchString(c.Name) {
		return fmt.Errorf("driver name %q must be 1 to 63 letters, digits, dashes and dots, with a letter or digit at both ends", c.Name)
	}
	for _, node := range append([]string{c.NodeID}, c.OtherNodes...) {
		if node == "" || len(node) > maxNodeIDBytes {
			return fmt.Errorf("node ID %q must have 1 to %d bytes", node, maxNodeIDBytes)
		}
	}
	if c.MaxVolumesPerNode < 0 {
		return fmt.Errorf("maximum of volumes per node must not be negative, got %d", c.MaxVolumesPerNode)
	}
	if c.Capacity < 0 {
		return fmt.Errorf("capacity must not be negative, got %d bytes", c.Capacity)
	}
	if c.Volumes < 0 {
		return fmt.Errorf("number of volumes must not be negative, got %d", c.Volumes)
	}
	for i, entry := range c.Health {
		if err := entry.validate(); err != nil {
			return fmt.Errorf("health entry %d: %w", i+1, err)
		}
	}
	if len(c.Topologies) > 0 && !c.Capabilities.Has(Topology) {
		return errors.New("topologies are given, but the capability topology is off")
	}
	if err := c.Capabilities.validate(); err != nil {
		return err
	}
	return validateTopologies(c.Topologies)
}
