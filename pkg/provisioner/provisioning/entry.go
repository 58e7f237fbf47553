package provisioning

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/provisioner/journalstore"
)

// Journal stores an entry for each CreateVolume call until the outcome is recorded.
type Journal interface {
	Start(ctx context.Context) ([]journal.Entry, error)
	TakeOver(ctx context.Context) ([]journal.Entry, error)
	Write(ctx context.Context, entry journal.Entry) error
	Remove(claim types.UID)
	// Has reports whether there may be an entry of the claim.
	Has(claim types.UID) bool
	RemoveNow(ctx context.Context, claim types.UID) error
	MoveToUnresolved(ctx context.Context, entry journal.Entry, reason string) error
	Resume(ctx context.Context, entry journal.Entry) (journal.Entry, error)
	RemoveUnresolved(ctx context.Context, claim types.UID) error
	Unresolved() []journal.Entry
	// Forbidden reports whether the error means a lasting lack of permission.
	Forbidden(ctx context.Context, err error) bool
}

// adopt takes over an inherited entry. Its process may have written a PersistentVolume a moment ago: the write
// counts as open.
func (c *Controller) adopt(ctx context.Context, o *observation) (*observation, error) {
	r := o.record
	if r.entry.resumed {
		entry := c.entryFor(o, r, cmp.Or(r.entry.stored, r.request.plan))
		if _, err := c.Journal.Resume(ctx, entry); err != nil {
			return nil, err
		}
	}
	c.updateRecord(o, func(r *claimRecord) {
		r.entry.resumed, r.claim.openedAt, r.object.writtenAt = false, time.Now(), time.Now()
		r.entry.state, r.request.creation = provision.Adopted(r.entry.state), provision.Requested
	})
	return o.next(o.claim), nil
}

// writeEntry makes the entry of the request durable. A request that is too large for the
// journal is sent without an entry.
func (c *Controller) writeEntry(ctx context.Context, o *observation, s provision.State) (*observation, error) {
	r := o.record
	entry := c.entryFor(o, r, o.plan)
	err := c.Journal.Write(ctx, entry)
	if errors.Is(err, journal.ErrTooLarge) {
		return o, c.bypassEntry(ctx, o, s, err)
	}
	if err != nil {
		c.updateRecord(o, func(r *claimRecord) {
			// The write may have been executed. Without a call its entry would outlive the claim, and the next leader
			// would create a volume that nobody wants.
			if r.claim.last = o.claim; r.entry.state == provision.NoEntry {
				r.entry.state = provision.Outdated
			}
		})
		return nil, c.notWritten(ctx, o, s, fmt.Errorf("the driver is not called without a journal entry: %w", err))
	}
	c.updateRecord(o, func(r *claimRecord) {
		r.entry.state, r.entry.stored, r.entry.superseded = provision.Durable, o.plan.withoutCredentials(), entry.Superseded
		r.entry.discarded, r.claim.last = "", o.claim
	})
	return o, nil
}

// bypassEntry has a request sent that is too large for the journal. The entry of an earlier request stays, and
// says first that a PersistentVolume may exist, for this request is not announced later: the next leader would
// repeat the earlier request and take the disk, which its user may have kept meanwhile.
func (c *Controller) bypassEntry(ctx context.Context, o *observation, s provision.State, tooLarge error) error {
	r := o.record
	announces := r.entry.state == provision.Durable && !r.entry.announced
	if announces {
		r.entry.announced = true
		if err := c.Journal.Write(ctx, c.entryFor(o, r, r.entry.stored)); err != nil {
			return c.notWritten(ctx, o, s, fmt.Errorf("the driver is not called before the journal entry says so: %w", err))
		}
	}
	c.reportUnlogged(o, tooLarge)
	c.updateRecord(o, func(r *claimRecord) {
		r.request.bypass, r.entry.announced = bypassTooLarge, r.entry.announced || announces
	})
	return nil
}

// announce writes into the entry that a PersistentVolume may exist. A late write created one, its user removed it
// to keep the disk, and nothing was left of it: the next leader repeated the request, took the answer for
// unusable, and deleted the disk (soak, seed 433484304). The volume of an announced entry is left alone.
func (c *Controller) announce(ctx context.Context, o *observation, s provision.State) (*observation, error) {
	r := o.record
	r.entry.announced = true
	if err := c.Journal.Write(ctx, c.entryFor(o, r, r.request.plan)); err != nil {
		err = fmt.Errorf("the volume is not recorded before its journal entry says so: %w", err)
		return nil, c.notWritten(ctx, o, s, err)
	}
	c.updateRecord(o, func(r *claimRecord) { r.entry.announced = true })
	return o.next(o.claim), nil
}

// writeDiscarding writes the state Discarding and the volume handle into the entry.
func (c *Controller) writeDiscarding(ctx context.Context, o *observation, s provision.State) (*observation, error) {
	r := o.record
	entry := c.entryFor(o, r, r.request.plan)
	entry.State, entry.Handle, entry.Volume = journal.Discarding, r.disk.handle, r.disk.volume
	err := c.Journal.Write(ctx, entry)
	if errors.Is(err, journal.ErrTooLarge) {
		err = c.Journal.Write(ctx, c.Backend.Shorten(entry))
	}
	if errors.Is(err, journal.ErrTooLarge) {
		// The entry of the request stays. After a crash the request finds the volume again, which is then recorded
		// or left alone; its handle is in no entry, so nothing is deleted by a handle that has another disk since.
		c.reportUnlogged(o, err)
		err = nil
	}
	if err != nil {
		return nil, c.notWritten(ctx, o, s, fmt.Errorf("the volume is not deleted before its journal entry says so: %w", err))
	}
	c.updateRecord(o, func(r *claimRecord) { r.entry.state = provision.Discarding })
	return o.next(o.claim), nil
}

// reportUnlogged reports a request that is sent without a journal entry.
func (c *Controller) reportUnlogged(o *observation, err error) {
	c.Reporter.ReportAlways(o.claim, controller.WarningEvent(provisioningUnlogged, fmt.Sprintf(
		"Volume %s is created without a journal entry and may be left behind if the provisioner ends during the call: %v",
		o.name, err)))
}

// notWritten reports that a step waits for its journal entry. A lasting lack of permission ends
// the journal. The end of this process's leadership is not reported.
func (c *Controller) notWritten(ctx context.Context, o *observation, s provision.State, err error) error {
	if c.Journal.Forbidden(ctx, err) {
		c.journaled.Store(false)
	}
	if ctx.Err() != nil || errors.Is(err, journalstore.ErrLost) || s.Want != provision.Wanted &&
		s.Want != provision.Misplaced {
		return err
	}
	return c.reportFailure(o, err)
}

// removeEntry removes the entry, and forgets the call of the entry.
func (c *Controller) removeEntry(ctx context.Context, o *observation, s provision.State,
	reason provision.Reason) (*observation, error) {
	r := o.record
	if s.Creation == provision.Created { // the volume is recorded, or the claim is bound
		c.reportLeftAlone(o, volumeNamed)
	}
	if reason == provision.ClaimBoundOrLost && !s.Record.IsOfClaim() {
		// The disk of a bound claim has no PersistentVolume: with the entry goes the last that Kubernetes knows of
		// the disk, which holds data. So the user is told first.
		if err := c.reportVanished(ctx, o); err != nil {
			return nil, err
		}
	}
	if r.entry.resumed {
		if err := c.Journal.RemoveUnresolved(ctx, o.claim.UID); err != nil {
			return nil, err
		}
	}
	c.Journal.Remove(o.claim.UID)
	c.releaseHandle(r)
	c.updateRecord(o, func(r *claimRecord) {
		r.entry, r.request, r.disk = entryFacts{}, requestFacts{}, diskFacts{}
	})
	after := *o
	after.plan = nil
	return &after, nil
}

// reportVanished reports a bound claim whose PersistentVolume no longer exists. The volume
// is read live: the cache may be stale.
func (c *Controller) reportVanished(ctx context.Context, o *observation) error {
	volume, err := controller.ReadLive(ctx, "volume", o.name, c.Client.CoreV1().PersistentVolumes().Get)
	if err != nil || volume != nil {
		return err
	}
	c.Reporter.Report(o.claim, controller.WarningEvent(volumeVanished, fmt.Sprintf(
		"The claim was bound to volume %s, whose PersistentVolume no longer exists; "+
			"the volume in the storage system may hold data and is left alone", o.name)))
	return nil
}

// moveToUnresolved moves the entry to the unresolved ones, for the administrator.
func (c *Controller) moveToUnresolved(ctx context.Context, o *observation, s provision.State,
	reason provision.Reason) (*observation, error) {
	r := o.record
	entry := c.entryFor(o, r, cmp.Or(r.entry.stored, r.request.plan))
	if s.Entry == provision.Discarding || r.entry.discarded != "" {
		// By the handle an administrator finds the disk. Entries came without it if the volume was being discarded
		// and its user may have kept it, or another node had recorded one.
		entry.State, entry.Handle = journal.Discarding, cmp.Or(r.entry.discarded, r.disk.handle)
	}
	why := r.request.answers.unresolved
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
		if err := c.keepInEntry(ctx, entry, r.entry.announced); err != nil {
			return nil, err
		}
	}
	if err := c.Journal.MoveToUnresolved(ctx, entry, why); err != nil {
		return nil, err
	}
	c.releaseHandle(r)
	c.memory.forget(o.claim.UID, o.name)
	if !o.gone {
		// A later request may find the volume of this one, perhaps with data: it is not certainly new.
		c.updateRecord(o, func(r *claimRecord) { r.claim.inherited = true })
	}
	c.loop.EnqueueAfter(o.subject().key, c.Backoff.Initial) // a living claim is served again
	return nil, nil
}

// Reasons against a call for a deleted claim.
const (
	ledByAnother = "another program was the leader after the volume was requested"
	mayBeKept    = "the claim is gone, and its user may have removed the PersistentVolume, " +
		"and its finalizer if it had one, to keep the volume"
	elsewhere = "the claim got a volume on another node, and a request to this node may have created one, too"
	nameInUse = "the claim is gone, and another PersistentVolume has the name of its volume, which exists"

	discardInterrupted = "an earlier process was deleting the unrecorded volume, " +
		"whose handle may be that of another volume by now"
)

// keepInEntry writes into the active entry that a user may keep the volume. The move to the unresolved entries is
// two writes: a process that ends between them leaves the active entry, whose request the next leader would
// repeat for a disk that its user has kept.
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

// errWriteOpen: a late write would record the disk for the waiting claim again.
var errWriteOpen = errors.New("an earlier write of the PersistentVolume has no answer and may still take effect; " +
	"the disk is deleted once it cannot")

// RemoveEntry removes the journal entry of the volume's claim, and reports whether there was
// one; without an error no entry is left, and the volume may be deleted. The entry of a volume that
// only the cache has is of a later request, and stays. The caller holds the lock of the volume name.
func (c *Controller) RemoveEntry(ctx context.Context, volume *v1.PersistentVolume) (removed bool, err error) {
	if volume.Spec.ClaimRef == nil || c.Journal == nil {
		return false, nil
	}
	claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{UID: volume.Spec.ClaimRef.UID}}
	if c.Scope.VolumeName(claim) != volume.Name {
		return false, nil
	}
	r, known := c.memory.lookup(claim.UID)
	if known && r.object.isWriteOpen(c.Timeouts.OpenWrite) {
		// A user deletes the volume of a waiting claim right after a write of it had no answer. The API server may
		// execute the write after the disk is deleted, and bind the claim to a PersistentVolume without a disk.
		return false, errWriteOpen
	}
	if removed = c.Journal.Has(claim.UID); removed {
		// The cache had a volume that was deleted while its claim's volume was requested again. With the entry of
		// the new request went the knowledge of the new disk.
		if live, err := controller.LiveVolume(ctx, c.Client, volume); live == nil || err != nil {
			return false, cmp.Or(err, fmt.Errorf("volume %s no longer exists: %w", volume.Name, controller.ErrStaleCache))
		}
	}
	if err := c.Journal.RemoveNow(ctx, claim.UID); err != nil {
		return false, err
	}
	if known {
		c.releaseHandle(r)
		s := subject{uid: claim.UID, key: keyOf(controller.ClaimKey(volume), claim.UID)}
		c.memory.update(s, volume.Name, func(r *claimRecord) {
			r.object.recorded = true
			r.entry, r.request, r.disk = entryFacts{}, requestFacts{}, diskFacts{}
		})
	}
	return removed, nil
}

// entryFor returns the journal entry for the next request.
func (c *Controller) entryFor(o *observation, r claimRecord, p *plan) journal.Entry {
	entry := journal.Entry{
		UID: o.claim.UID, Namespace: o.claim.Namespace, Name: o.claim.Name, Node: p.selected,
		Superseded: r.entry.superseded, Announced: r.entry.announced, Volume: p.volume,
	}
	entry.Request, entry.Secret = p.request.Stored()
	if r.request.creation != provision.Created && r.entry.stored != nil && !p.equals(r.entry.stored) {
		entry.Superseded = c.superseded(r.entry.superseded, r.entry.stored)
	}
	return entry
}

// superseded adds an unanswered request. Only the first and the last one are kept.
func (c *Controller) superseded(before []journal.Request, latest *plan) []journal.Request {
	for _, stored := range before {
		if known, err := c.Backend.Restore(stored, nil); err == nil && latest.request.Equal(known) {
			return before
		}
	}
	if len(before) < 2 {
		return append(slices.Clip(before), latest.stored())
	}
	return []journal.Request{before[0], latest.stored()}
}
