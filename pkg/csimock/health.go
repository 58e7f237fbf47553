package csimock

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// Condition is one adverse health condition of a volume or of the storage
// backend. CSI allows no two with the same status and reason.
type Condition struct {
	// Status is the name of a CSI VolumeHealthErrorType, such as DEGRADED, or
	// of a StorageHealthErrorType, such as STORAGE_UNREACHABLE.
	Status string `json:"status"`
	// Reason is a word in CamelCase.
	Reason string `json:"reason"`
	// Message is for people; it may be empty.
	Message string `json:"message,omitempty"`
}

// The conditions that the driver finds itself.
var (
	topologyNotServed = Condition{
		Status: csi.VolumeHealthErrorType_INACCESSIBLE.String(), Reason: "TopologyNotServed",
		Message: "the driver does not serve the topology of the volume",
	}
	targetPathMissing = Condition{
		Status: csi.VolumeHealthErrorType_INACCESSIBLE.String(), Reason: "TargetPathMissing",
		Message: "a target path of the volume does not exist on the node",
	}
	poolOvercommitted = Condition{
		Status: csi.StorageHealthErrorType_STORAGE_DEGRADED.String(), Reason: "PoolOvercommitted",
		Message: "the volumes have more bytes than the pool",
	}
)

// conditionReason is the format of a reason.
var conditionReason = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)

// validateConditions refuses conditions that CSI does not allow. known are the
// values of the enum that Status names; its value 0 is no status.
func validateConditions(conditions []Condition, known map[string]int32) error {
	seen := map[Condition]bool{}
	for _, c := range conditions {
		key := Condition{Status: c.Status, Reason: c.Reason}
		switch {
		case known[c.Status] == 0:
			return fmt.Errorf("unknown status %q, known are %s", c.Status, strings.Join(statuses(known), ", "))
		case !conditionReason.MatchString(c.Reason):
			return fmt.Errorf("reason %q must be a word in CamelCase", c.Reason)
		case seen[key]:
			return fmt.Errorf("status %s with reason %s is given twice", c.Status, c.Reason)
		}
		seen[key] = true
	}
	return nil
}

// statuses returns the names in an enum but for that of value 0, sorted.
func statuses(known map[string]int32) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(known)), func(name string) bool { return known[name] == 0 })
}

// withCondition returns the conditions and one more, unless there is one with
// its status and reason.
func withCondition(conditions []Condition, more Condition) []Condition {
	if slices.ContainsFunc(conditions, func(c Condition) bool { return c.Status == more.Status && c.Reason == more.Reason }) {
		return conditions
	}
	return append(slices.Clone(conditions), more)
}

// SetVolumeHealth replaces the conditions of a volume, given by its ID or its
// name, and saves them; without conditions the volume is healthy.
func (d *Driver) SetVolumeHealth(volume string, conditions ...Condition) error {
	if err := validateConditions(conditions, csi.VolumeHealthErrorType_value); err != nil {
		return fmt.Errorf("set health of volume %q: %w", volume, err)
	}
	if !d.setVolumeHealth(volume, conditions) {
		return fmt.Errorf("set health of volume %q: it does not exist", volume)
	}
	return d.state.save(d.store)
}

// setVolumeHealth reports whether it found the volume.
func (d *Driver) setVolumeHealth(volume string, conditions []Condition) bool {
	d.store.Lock()
	defer d.store.Unlock()
	v := d.store.findVolume(volume)
	if v == nil {
		return false
	}
	v.Health = slices.Clone(conditions)
	d.store.version++
	return true
}

// SetStorageHealth replaces the conditions of the storage backend as the node
// sees it, and saves them; without conditions it is healthy.
func (d *Driver) SetStorageHealth(conditions ...Condition) error {
	if err := validateConditions(conditions, csi.StorageHealthErrorType_value); err != nil {
		return fmt.Errorf("set health of storage: %w", err)
	}
	d.store.Lock()
	d.store.health = slices.Clone(conditions)
	d.store.version++
	d.store.Unlock()
	return d.state.save(d.store)
}

// controllerHealth returns the conditions of a volume as the controller sees
// them. The store is locked.
func (d *Driver) controllerHealth(v *Volume) []Condition {
	served := !d.config.Capabilities.Has(Topology) || len(v.Topology) == 0 || findTopology(d.config.Topologies, v.Topology) != nil
	if served {
		return v.Health
	}
	return withCondition(v.Health, topologyNotServed)
}

// nodeHealth returns the conditions of a volume as the node sees them. The
// store is locked.
func (d *Driver) nodeHealth(v *Volume) []Condition {
	for path := range v.Targets {
		if _, err := os.Lstat(path); err != nil {
			return withCondition(v.Health, targetPathMissing)
		}
	}
	return v.Health
}

// storageHealth returns the conditions of the storage backend. The store is
// locked.
func (d *Driver) storageHealth() []Condition {
	if d.store.used <= d.config.Capacity {
		return d.store.health
	}
	return withCondition(d.store.health, poolOvercommitted)
}

// volumeHealth returns the conditions of a volume in the words of CSI.
func volumeHealth(id string, conditions []Condition) *csi.VolumeHealth {
	health := &csi.VolumeHealth{VolumeId: id}
	for _, c := range conditions {
		health.HealthStatuses = append(health.HealthStatuses, &csi.VolumeHealth_VolumeHealthEntry{
			Status:  csi.VolumeHealthErrorType(csi.VolumeHealthErrorType_value[c.Status]),
			Reason:  c.Reason,
			Message: c.Message,
		})
	}
	return health
}

// backendHealth returns the conditions of the storage backend in the words of
// CSI.
func backendHealth(conditions []Condition) []*csi.NodeGetStorageHealthResponse_StorageBackendHealth {
	var health []*csi.NodeGetStorageHealthResponse_StorageBackendHealth
	for _, c := range conditions {
		health = append(health, &csi.NodeGetStorageHealthResponse_StorageBackendHealth{
			Status:  csi.StorageHealthErrorType(csi.StorageHealthErrorType_value[c.Status]),
			Reason:  c.Reason,
			Message: c.Message,
		})
	}
	return health
}
