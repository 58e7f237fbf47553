package provisioning

import (
	"cmp"
	"context"
	"fmt"

	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/provision"
)

// moveToUnresolved moves the entry to the unresolved ones, for the administrator.
func (c *Controller) moveToUnresolved(ctx context.Context, o *observation, s provision.State, reason provision.Reason) (*observation, error) {
	r := o.record
	entry := c.entryFor(o, r, cmp.Or(r.stored, r.plan))
	if s.Entry == provision.Discarding || r.discarded != "" {
		entry.State, entry.Handle = journal.Discarding, cmp.Or(r.discarded, r.handle)
	}
	why := r.unresolved
	if reason == provision.CustodyBroken {
		entry.CustodyBroken, why = true, ledByAnother
	}
	switch reason {
	case provision.VolumeElsewhere:
		why = elsewhere
	case provision.NameInUse:
		why = nameInUse
	case provision.DiscardInterrupted:
		why = discardInterrupted
	default:
	}
	if reason == provision.VolumeMayBeKept {
		why, entry.Announced = mayBeKept, true
		if err := c.keepInEntry(ctx, entry, r.announced); err != nil {
			return nil, err
		}
	}
	if err := c.Journal.MoveToUnresolved(ctx, entry, why); err != nil {
		return nil, err
	}
	c.releaseHandle(r)
	c.memory.forget(o.claim.UID, o.name)
	if !o.gone { // a later request may find the volume of this one
		c.updateRecord(o, func(r *claimRecord) { r.inherited = true })
	}
	c.loop.EnqueueAfter(o.subject().key, c.Backoff.Initial) // a living claim is served again
	return nil, nil
}

// keepInEntry writes into the active entry that a user may keep the volume: if this process ends before it removes
// the entry, the next leader must not repeat the request.
func (c *Controller) keepInEntry(ctx context.Context, entry journal.Entry, known bool) error {
	if known || entry.State == journal.Discarding {
		return nil
	}
	entry.Announced = true
	if err := c.Journal.Write(ctx, entry); err != nil {
		return fmt.Errorf("say in the journal entry that the volume may be kept: %w", err)
	}
	return nil
}
