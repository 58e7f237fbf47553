package csimock

import (
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Driver is a CSI driver. It is safe for concurrent use.
type Driver struct {
	config Config
	nodes  map[string]struct{} // nodes that volumes can be published to
	store  *store
	state  *stateFile
	faults script
	calls  *callLog

	connections connections
}

// New returns a driver that does not serve yet, with the volumes of its state file. It
// fails if the configuration, the state file or the call log cannot be used.
func New(config Config) (*Driver, error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return nil, fmt.Errorf("configure driver: %w", err)
	}
	d := &Driver{
		config: config,
		nodes:  map[string]struct{}{config.NodeID: {}},
		state:  &stateFile{path: config.StateFile, driver: config.Name},
	}
	for _, node := range config.OtherNodes {
		d.nodes[node] = struct{}{}
	}
	if err := d.faults.add(config.Faults); err != nil {
		return nil, err
	}
	var err error
	if d.store, err = d.state.load(); err != nil {
		return nil, err
	}
	d.addInitialVolumes()
	d.addHealth()
	if err := d.state.save(d.store); err != nil {
		return nil, err
	}
	if d.calls, err = openCallLog(config.CallLog); err != nil {
		return nil, err
	}
	return d, nil
}

// addInitialVolumes adds the volumes that the driver starts with, unless they exist.
func (d *Driver) addInitialVolumes() {
	for i := range d.config.Volumes {
		name := fmt.Sprintf("volume-%06d", i+1)
		if _, exists := d.store.volumes.byName[name]; exists {
			continue
		}
		d.store.addVolume(&Volume{
			Record: d.store.newRecord("vol", name), Capacity: 1 << 20,
			Access: []Access{{Type: Mount, Mode: singleNodeWriters[0]}},
		})
	}
}

// Name returns the name that the driver reports.
func (d *Driver) Name() string { return d.config.Name }

// Inject appends faults. The first fault that matches a call applies to the call. Unknown
// methods and faults without effect are refused.
func (d *Driver) Inject(faults ...Fault) error { return d.faults.add(faults) }

// ClearFaults removes all faults. Calls in progress keep theirs.
func (d *Driver) ClearFaults() { d.faults.clear() }

// Calls returns the finished calls, oldest first. The driver keeps at least the last 65536
// calls.
func (d *Driver) Calls() []Call { return d.calls.all() }

// Volumes returns a copy of all volumes, oldest first.
func (d *Driver) Volumes() []Volume {
	d.store.Lock()
	defer d.store.Unlock()
	all := d.store.volumes.sorted()
	volumes := make([]Volume, 0, len(all))
	for _, v := range all {
		volumes = append(volumes, v.clone())
	}
	return volumes
}

// Snapshots returns a copy of all snapshots, oldest first.
func (d *Driver) Snapshots() []Snapshot {
	d.store.Lock()
	defer d.store.Unlock()
	all := d.store.snapshots.sorted()
	snapshots := make([]Snapshot, 0, len(all))
	for _, s := range all {
		snapshots = append(snapshots, s.clone())
	}
	return snapshots
}

// Close closes the call log. With a call log, later calls fail.
func (d *Driver) Close() error {
	if err := d.calls.close(); err != nil {
		return fmt.Errorf("close call log: %w", err)
	}
	return nil
}

// countVolumes returns the number of volumes.
func (d *Driver) countVolumes() int {
	d.store.Lock()
	defer d.store.Unlock()
	return len(d.store.volumes.byID)
}

// usualCapacity is the size in bytes of a volume without a requested capacity.
const usualCapacity = int64(1) << 30

// newCapacity returns the size in bytes of a new volume within the requested range, at
// least least. The store is locked.
func (d *Driver) newCapacity(wanted *csi.CapacityRange, least int64) (int64, error) {
	required, limit := wanted.GetRequiredBytes(), wanted.GetLimitBytes()
	if required > 0 && required < least || limit > 0 && limit < least {
		return 0, status.Errorf(codes.OutOfRange, "the capacity must be %d bytes or more to hold the source", least)
	}
	capacity := max(required, least)
	if capacity == 0 {
		capacity = usualCapacity
		if limit > 0 {
			capacity = min(capacity, limit)
		}
	}
	return capacity, d.checkPool(capacity, capacity)
}

// checkPool refuses a volume that does not fit into the pool: OutOfRange if the capacity
// exceeds the pool, ResourceExhausted if more bytes exceed the available capacity. The
// store is locked.
func (d *Driver) checkPool(capacity, more int64) error {
	if capacity > d.config.Capacity {
		return status.Errorf(codes.OutOfRange, "a volume of %d bytes is larger than the pool of %d", capacity,
			d.config.Capacity)
	}
	if more > d.available() {
		return status.Errorf(codes.ResourceExhausted, "the pool has %d bytes available, %d are needed", d.available(), more)
	}
	return nil
}

// expand expands the volume to the required capacity. The store is locked.
func (d *Driver) expand(v *Volume, wanted *csi.CapacityRange) error {
	required, limit := wanted.GetRequiredBytes(), wanted.GetLimitBytes()
	if limit > 0 && v.Capacity > limit {
		return status.Errorf(codes.OutOfRange, "volume %q has %d bytes already, more than the limit of %d", v.ID, v.Capacity,
			limit)
	}
	if required <= v.Capacity {
		return nil
	}
	if err := d.checkPool(required, required-v.Capacity); err != nil {
		return err
	}
	d.store.resizeVolume(v, required)
	return nil
}
