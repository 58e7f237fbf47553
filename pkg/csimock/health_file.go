package csimock

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"sigs.k8s.io/yaml"
)

// HealthEntry is a condition of a volume or, without a volume, of the storage backend.
type HealthEntry struct {
	// Volume is the ID or name of a volume, which may be created later.
	Volume string `json:"volume,omitempty"`
	Condition
}

// LoadHealth reads a YAML or JSON file with a list of conditions, such as
//
//   - volume: pvc-1
//     status: DEGRADED
//     reason: ReplicaMissing
//   - status: STORAGE_UNREACHABLE
//     reason: NoPath
//
// A further field is message. An error names the file and the entry.
func LoadHealth(path string) ([]HealthEntry, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read health: %w", err)
	}
	var raw []json.RawMessage
	if err := yaml.UnmarshalStrict(data, &raw); err != nil {
		return nil, fmt.Errorf("read health %s: want a list of conditions: %w", path, err)
	}
	entries := make([]HealthEntry, len(raw))
	for i := range raw {
		err := decodeStrict(raw[i], &entries[i])
		if err == nil {
			err = entries[i].validate()
		}
		if err != nil {
			return nil, fmt.Errorf("read health %s: entry %d: %w", path, i+1, err)
		}
	}
	return entries, nil
}

// validate refuses an entry whose condition CSI does not allow.
func (e HealthEntry) validate() error {
	known := csi.VolumeHealthErrorType_value
	if e.Volume == "" {
		known = csi.StorageHealthErrorType_value
	}
	return validateConditions([]Condition{e.Condition}, known)
}

// addHealth adds the configured conditions to the storage backend and to existing volumes.
func (d *Driver) addHealth() {
	for _, entry := range d.config.Health {
		if entry.Volume == "" {
			d.store.health = withCondition(d.store.health, entry.Condition)
		} else if v := d.store.findVolume(entry.Volume); v != nil {
			v.Health = withCondition(v.Health, entry.Condition)
		}
	}
	d.store.version++
}

// healthOf returns the configured conditions of the volume with the name.
func (c Config) healthOf(name string) []Condition {
	var conditions []Condition
	for _, entry := range c.Health {
		if entry.Volume == name {
			conditions = withCondition(conditions, entry.Condition)
		}
	}
	return conditions
}
