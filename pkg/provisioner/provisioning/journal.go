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
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/provisioner/journalstore"
	"github.com/exeunt-io/exeunt/pkg/storage"
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

// Start takes over the journal. It must return before claims are reconciled and volumes
// deleted.
func (c *Controller) Start(ctx context.Context) error {
	if c.Journal == nil {
		return nil
	}
	entries, err := c.Journal.Start(ctx)
	if errors.Is(err, journalstore.ErrForbidden) {
		c.journaled.Store(false)
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the provisioning journal: %w", err)
	}
	c.rescanLater(ctx, c.inherit(ctx, entries))
	return nil
}

func (c *Controller) rescanLater(ctx context.Context, kept []journal.Entry) {
	after := time.After(c.Timeouts.Rescan)
	go func() {
		select {
		case <-after:
			c.rescan(ctx, kept)
		case <-ctx.Done():
		}
	}()
}

// rescan reads Leases that the previous leader created after Start had listed them, and
// rejects the kept entries again.
func (c *Controller) rescan(ctx context.Context, kept []journal.Entry) {
	if ctx.Err() != nil {
		return
	}
	entries, err := c.Journal.TakeOver(ctx)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Reading the provisioning journal again failed, trying again", "wait", c.Timeouts.Rescan)
		c.rescanLater(ctx, kept)
		return
	}
	if kept = c.inherit(ctx, append(kept, entries...)); len(kept) > 0 {
		c.rescanLater(ctx, kept)
	}
}

// inherit records the entries of earlier processes and enqueues their claims. An entry with
// another volume name than the claim's is forged, or was written with other flags: it leads
// to no call. The result are the rejected entries that could not be moved yet.
func (c *Controller) inherit(ctx context.Context, entries []journal.Entry) (kept []journal.Entry) {
	unresolved := map[types.UID]bool{} // after a crash between the two writes of MoveToUnresolved
	for _, entry := range c.Journal.Unresolved() {
		unresolved[entry.UID] = true
	}
	for _, entry := range entries {
		claim := claimFrom(entry)
		planned, err := c.planFrom(entry)
		if volume := c.Scope.VolumeName(claim); err == nil && entry.VolumeName() != volume {
			err = errors.New("the volume is called " + entry.VolumeName() + ", and not " + volume + " as the claim's volume")
		}
		if err != nil {
			if c.rejectEntry(ctx, entry, claim, err) != nil {
				kept = append(kept, entry)
			}
			continue
		}
		s := subject{uid: entry.UID, key: keyOf(controller.Key(claim), entry.UID)}
		c.memory.update(s, entry.VolumeName(), func(r *claimRecord) { r.inherit(entry, claim, planned, unresolved[entry.UID]) })
		c.loop.Enqueue(s.key)
	}
	return kept
}

// errServedMeanwhile: the move of the rejected entry would remove the entry of an open call.
var errServedMeanwhile = errors.New("the claim of the entry has another entry by now")

// rejectEntry moves an unusable entry to the unresolved ones. For an approved entry it only
// logs: the journal may hold its lock during the approval.
func (c *Controller) rejectEntry(ctx context.Context, entry journal.Entry, claim *v1.PersistentVolumeClaim, reason error) error {
	logger := klog.FromContext(ctx).WithValues("claim", klog.KObj(claim), "volume", entry.VolumeName())
	if entry.Unresolved != nil {
		logger.Error(reason, "An approved entry of the provisioning journal cannot be finished")
		return nil
	}
	defer c.Locks.Lock(c.Scope.VolumeName(claim))()
	err := errServedMeanwhile
	if r, _ := c.memory.lookup(entry.UID); r.entry.state == provision.NoEntry {
		err = c.Journal.MoveToUnresolved(ctx, entry, reason.Error())
	}
	if err != nil {
		logger.Error(err, "Moving an unusable entry of the provisioning journal failed, trying again later", "wait", c.Timeouts.Rescan)
	}
	return err
}

// Reasons against a call for a deleted claim.
const (
	ledByAnother = "another program was the leader after the volume was requested"
	mayBeKept    = "the claim is gone, and its user may have removed the PersistentVolume, and its finalizer if it had one, to keep the volume"
	elsewhere    = "the claim got a volume on another node, and a request to this node may have created one, too"
	nameInUse    = "the claim is gone, and another PersistentVolume has the name of its volume, which exists"

	discardInterrupted = "an earlier process was deleting the unrecorded volume, whose handle may be that of another volume by now"
)

// isProtected reports whether the PersistentVolume has the finalizer: it remains until a provisioner has looked at it.
func isProtected(volume *v1.PersistentVolume) bool {
	return finalizer.Has(volume.Finalizers, finalizer.External)
}

// inherit records an inherited entry, unless this process has newer facts. The request is repeated also if the volume was
// being discarded: since then the disk may be gone, its handle that of another volume, or the volume that of its claim again, as
// after a restore of etcd.
func (r *claimRecord) inherit(entry journal.Entry, claim *v1.PersistentVolumeClaim, planned *plan, unresolved bool) {
	if r.entry.state != provision.NoEntry || r.request.creation != provision.NotRequested {
		r.entry.resumed = r.entry.resumed || entry.Unresolved != nil
		return
	}
	r.entry.state = provision.Inherited
	if entry.CustodyBroken {
		r.entry.state = provision.Untrusted
	}
	r.claim.last, r.request.plan, r.claim.node, r.entry.superseded = claim, planned, entry.Node, entry.Superseded
	isDiscarding := entry.State == journal.Discarding
	switch {
	case !isDiscarding:
		r.entry.stored = r.request.plan
	case entry.Request.IsShortened():
		r.entry.stored, r.entry.discarded = r.request.plan, entry.Handle
		r.entry.state += provision.InheritedDiscarding - provision.Inherited
	default: // the entry of the request is written again
		r.entry.discarded = entry.Handle
	}
	isApproved := entry.Unresolved != nil
	r.entry.resumed = unresolved || isApproved
	r.claim.inherited = true
	r.object.published = entry.Announced && !isApproved
	r.entry.announced = r.object.published
}

// Approve resumes an unresolved entry after "exeunt journal finish". A restored secret has
// another UID, so the UID is not compared: the administrator has approved the secret.
func (c *Controller) Approve(ctx context.Context, entry journal.Entry) {
	entry.CustodyBroken = false
	if entry.Secret != nil {
		entry.Secret = &journal.Secret{Namespace: entry.Secret.Namespace, Name: entry.Secret.Name}
	}
	c.inherit(ctx, []journal.Entry{entry})
}

// claimFrom returns a claim with the fields that the entry stores.
func claimFrom(entry journal.Entry) *v1.PersistentVolumeClaim {
	class := entry.Volume.Spec.StorageClassName
	claim := &v1.PersistentVolumeClaim{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Namespace: entry.Namespace, Name: entry.Name, UID: entry.UID,
			Annotations: map[string]string{storage.AnnStorageProvisioner: entry.Volume.Annotations[storage.AnnDynamicallyProvisioned]}},
		Spec: v1.PersistentVolumeClaimSpec{StorageClassName: &class},
	}
	if entry.Node != "" {
		claim.Annotations[storage.AnnSelectedNode] = entry.Node
	}
	return claim
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

// adopt takes over an inherited entry.
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
		c.updateRecord(o, func(r *claimRecord) { // the outcome of the write is unknown
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
// says first that a PersistentVolume may exist: this request is not announced later.
func (c *Controller) bypassEntry(ctx context.Context, o *observation, s provision.State, tooLarge error) error {
	r := o.record
	announces := r.entry.state == provision.Durable && !r.entry.announced
	if announces {
		r.entry.announced = true
		if err := c.Journal.Write(ctx, c.entryFor(o, r, r.entry.stored)); err != nil {
			return c.notWritten(ctx, o, s, fmt.Errorf("the driver is not called before the journal entry says so: %w", err))
		}
	}
	c.reportTooLarge(o, tooLarge)
	c.updateRecord(o, func(r *claimRecord) {
		r.request.bypass, r.entry.announced = bypassTooLarge, r.entry.announced || announces
	})
	return nil
}

// notWritten reports that a step waits for its journal entry. A lasting lack of permission ends
// the journal. The end of this process's leadership is not reported.
func (c *Controller) notWritten(ctx context.Context, o *observation, s provision.State, err error) error {
	if c.Journal.Forbidden(ctx, err) {
		c.journaled.Store(false)
	}
	if ctx.Err() != nil || errors.Is(err, journalstore.ErrLost) || s.Want != provision.Wanted && s.Want != provision.Misplaced {
		return err
	}
	return c.reportFailure(o, err)
}

// announce writes into the entry that a PersistentVolume may exist.
func (c *Controller) announce(ctx context.Context, o *observation, s provision.State) (*observation, error) {
	r := o.record
	r.entry.announced = true
	if err := c.Journal.Write(ctx, c.entryFor(o, r, r.request.plan)); err != nil {
		return nil, c.notWritten(ctx, o, s, fmt.Errorf("the volume is not recorded before its journal entry says so: %w", err))
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
	if errors.Is(err, journal.ErrTooLarge) { // after a crash the entry of the request finds the volume again
		c.reportTooLarge(o, err)
		err = nil
	}
	if err != nil {
		return nil, c.notWritten(ctx, o, s, fmt.Errorf("the volume is not deleted before its journal entry says so: %w", err))
	}
	c.updateRecord(o, func(r *claimRecord) { r.entry.state = provision.Discarding })
	return o.next(o.claim), nil
}

// removeEntry removes the entry, and forgets the call of the entry.
func (c *Controller) removeEntry(ctx context.Context, o *observation, s provision.State, reason provision.Reason) (*observation, error) {
	r := o.record
	if s.Creation == provision.Created { // the volume is recorded, or the claim is bound
		c.reportLeftAlone(o, volumeNamed)
	}
	if reason == provision.ClaimBoundOrLost && !s.Record.IsOfClaim() {
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

// errWriteOpen: a late write would record the disk for the waiting claim again.
var errWriteOpen = errors.New("an earlier write of the PersistentVolume has no answer and may still take effect; the disk is deleted once it cannot")

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
		return false, errWriteOpen
	}
	if removed = c.Journal.Has(claim.UID); removed {
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
