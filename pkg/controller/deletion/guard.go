package deletion

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	library "sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller"

	"github.com/exeunt-io/exeunt/pkg/reclaim"
)

// ShouldDelete is asked by the library before it deletes a volume: never while
// the gate is on, for then this package does it.
func (c *Controller) ShouldDelete(_ context.Context, volume *v1.PersistentVolume) bool {
	if c.Honor {
		return false
	}
	decision := reclaim.Decide(c.unprotected(c.observe(volume)).state)
	c.report(volume, decision.Reason)
	return decision.Action != reclaim.Wait
}

// Delete deletes a volume in the storage system for the library while the gate is
// off: after the same live reads as ever, and once. It returns an IgnoredError if
// the volume must stay.
func (c *Controller) Delete(ctx context.Context, volume *v1.PersistentVolume) error {
	if c.memory.of(volume.UID).volumeDeleted {
		return nil
	}
	confirmed, err := c.confirm(ctx, c.observe(volume))
	if err != nil {
		return fmt.Errorf("confirm that volume %s may be deleted: %w", volume.Name, err)
	}
	if confirmed == nil {
		return &library.IgnoredError{Reason: "the volume is gone"}
	}
	if decision := reclaim.Decide(c.unprotected(*confirmed).state); decision.Action != reclaim.DeleteVolume {
		return &library.IgnoredError{Reason: string(decision.Reason)}
	}
	if err := c.call(ctx, confirmed.volume); err != nil {
		return err
	}
	c.memory.note(volume.UID, func(d *done) { d.volumeDeleted = true })
	return nil
}

// unprotected leaves the finalizer out of account: with the gate off, the library
// takes it off before it asks.
func (c *Controller) unprotected(o observation) observation {
	o.state.Protected = false
	return o
}
