package csimock

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// Condition is an adverse health condition of a volume or of the storage backend. CSI
// requires that status and reason are unique.
type Condition struct {
	// Status is the name of a CSI VolumeHealthErrorType, such as DEGRADED, or
	// of a StorageHealthErrorType, such as STORAGE_UNREACHABLE.
	Status string `json:"status"`
	// Reason is a word in CamelCase.
	Reason string `json:"reason"`
	// Message is a text for users; it may be empty.
	Message string `json:"message,omitempty"`
}

// Conditions that the driver detects itself.
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

// validateConditions refuses conditions that CSI does not allow. known is the enum of the
// status; its value 0 is not a status.
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

// statuses returns the names of an enum except value 0, sorted.
func statuses(known map[string]int32) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(known)), func(name string) bool { return known[name] == 0 })
}

// withCondition returns the conditions with one more, unless its status and reason exist
// already.
func withCondition(conditions []Condition, more Condition) []Condition {
	if slices.ContainsFunc(conditions,
		func(c Condition) bool { return c.Status == more.Status && c.Reason == more.Reason }) {
		return conditions
	}
	return append(slices.Clone(conditions), more)
}

// SetVolumeHealth replaces and saves the conditions of a volume, by volume ID or name. No
// conditions means healthy.
func (d *Driver) SetVolumeHealth(volume string, conditions ...Condition) error {
	if err := validateConditions(conditions, csi.VolumeHealthErrorType_value); err != nil {
		return fmt.Errorf("set health of volume %q: %w", volume, err)
	}
	if !d.setVolumeHealth(volume, conditions) {
		return fmt.Errorf("set health of volume %q: it does not exist", volume)
	}
	return d.state.save(d.store)
}

// setVolumeHealth returns false for a missing volume.
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

// SetStorageHealth replaces and saves the conditions of the storage backend on the node. No
// conditions means healthy.
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

// controllerHealth returns the conditions of a volume that the controller reports. The
// store is locked.
func (d *Driver) controllerHealth(v *Volume) []Condition {
	served := !d.config.Capabilities.Has(Topology) || len(v.Topology) == 0 ||
		findTopology(d.config.Topologies, v.Topology) != nil
	if served {
		return v.Health
	}
	return withCondition(v.Health, topologyNotServed)
}

// nodeHealth returns the conditions of a volume that the node reports. The store is locked.
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

// volumeHealth returns the CSI message of the conditions of a volume.
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

// backendHealth returns the CSI messages of the conditions of the storage backend.
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

// ControllerGetVolumeHealth returns the conditions of a volume.
func (s *controllerServer) ControllerGetVolumeHealth(_ context.Context,
	request *csi.ControllerGetVolumeHealthRequest) (*csi.ControllerGetVolumeHealthResponse, error) {
	if err := checkText("volume_id", request.GetVolumeId()); err != nil {
		return nil, err
	}
	s.store.Lock()
	defer s.store.Unlock()
	volume, err := s.volume(request.GetVolumeId())
	if err != nil {
		return nil, err
	}
	return &csi.ControllerGetVolumeHealthResponse{VolumeHealth: volumeHealth(volume.ID, s.controllerHealth(volume))}, nil
}

// ControllerListVolumeHealth returns a page of the unhealthy volumes, oldest first.
func (s *controllerServer) ControllerListVolumeHealth(_ context.Context,
	request *csi.ControllerListVolumeHealthRequest) (*csi.ControllerListVolumeHealthResponse, error) {
	s.store.Lock()
	defer s.store.Unlock()
	wanted, err := parseWindow(request.GetStartingToken(), request.GetMaxEntries(), s.store.sequence)
	if err != nil {
		return nil, err
	}
	unhealthy := slices.DeleteFunc(s.store.volumes.sorted(),
		func(v *Volume) bool { return len(s.controllerHealth(v)) == 0 })
	volumes, next := page(unhealthy, wanted)
	response := &csi.ControllerListVolumeHealthResponse{NextToken: next}
	for _, v := range volumes {
		response.Entries = append(response.Entries, volumeHealth(v.ID, s.controllerHealth(v)))
	}
	return response, nil
}

// NodeGetVolumeHealth returns the conditions of a volume that the node reports. The volume
// need not be staged or published.
func (s *nodeServer) NodeGetVolumeHealth(_ context.Context,
	request *csi.NodeGetVolumeHealthRequest) (*csi.NodeGetVolumeHealthResponse, error) {
	if err := cmp.Or(
		checkText("volume_id", request.GetVolumeId()),
		checkOptionalPath("volume_publish_path", request.GetVolumePublishPath()),
		checkOptionalPath("staging_target_path", request.GetStagingTargetPath()),
	); err != nil {
		return nil, err
	}
	s.store.Lock()
	defer s.store.Unlock()
	volume, err := s.volume(request.GetVolumeId())
	if err != nil {
		return nil, err
	}
	return &csi.NodeGetVolumeHealthResponse{VolumeHealth: volumeHealth(volume.ID, s.nodeHealth(volume))}, nil
}

// NodeGetStorageHealth returns the conditions of the storage backend.
func (s *nodeServer) NodeGetStorageHealth(context.Context,
	*csi.NodeGetStorageHealthRequest) (*csi.NodeGetStorageHealthResponse, error) {
	s.store.Lock()
	defer s.store.Unlock()
	return &csi.NodeGetStorageHealthResponse{BackendHealth: backendHealth(s.storageHealth())}, nil
}
