package csimock

import (
	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

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
		return status.Errorf(codes.OutOfRange, "a volume of %d bytes is larger than the pool of %d", capacity, d.config.Capacity)
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
		return status.Errorf(codes.OutOfRange, "volume %q has %d bytes already, more than the limit of %d", v.ID, v.Capacity, limit)
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
