package csimock

import (
	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// usualCapacity is the size in bytes of a volume whose request names none.
const usualCapacity = int64(1) << 30

// chooseCapacity returns the size in bytes of a new volume within the range
// asked for, and not below least. The store is locked.
func (d *Driver) chooseCapacity(wanted *csi.CapacityRange, least int64) (int64, error) {
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
	return capacity, d.reserve(capacity, capacity)
}

// reserve refuses to take more bytes from the pool for a volume than it has:
// OutOfRange if a volume of that capacity can never fit, ResourceExhausted if
// others are in its way. The store is locked.
func (d *Driver) reserve(capacity, more int64) error {
	if capacity > d.config.Capacity {
		return status.Errorf(codes.OutOfRange, "a volume of %d bytes is larger than the pool of %d", capacity, d.config.Capacity)
	}
	if more > d.available() {
		return status.Errorf(codes.ResourceExhausted, "the pool has %d bytes left, %d are needed", d.available(), more)
	}
	return nil
}

// expand makes the volume at least as large as asked for. The store is locked.
func (d *Driver) expand(v *Volume, wanted *csi.CapacityRange) error {
	required, limit := wanted.GetRequiredBytes(), wanted.GetLimitBytes()
	if limit > 0 && v.Capacity > limit {
		return status.Errorf(codes.OutOfRange, "volume %q has %d bytes already, more than the limit of %d", v.ID, v.Capacity, limit)
	}
	if required <= v.Capacity {
		return nil
	}
	if err := d.reserve(required, required-v.Capacity); err != nil {
		return err
	}
	d.store.resizeVolume(v, required)
	return nil
}
