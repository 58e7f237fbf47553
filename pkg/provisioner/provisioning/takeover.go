package provisioning

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/provisioner/journalstore"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

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
		klog.FromContext(ctx).Error(err, "Reading the provisioning journal again failed, trying again", "wait",
			c.Timeouts.Rescan)
		c.rescanLater(ctx, kept)
		return
	}
	if kept = c.inherit(ctx, append(kept, entries...)); len(kept) > 0 {
		c.rescanLater(ctx, kept)
	}
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

// inherit records the entries of earlier processes and enqueues their claims. An entry with another volume name
// than the claim's is forged, or was written with other flags: its request would return the disk of another
// claim, and leads to no call. The result are the rejected entries that could not be moved yet.
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
		c.memory.update(s, entry.VolumeName(), func(r *claimRecord) {
			r.inherit(entry, claim, planned, unresolved[entry.UID])
		})
		c.loop.Enqueue(s.key)
	}
	return kept
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

// planFrom returns the plan of an inherited entry.
func (c *Controller) planFrom(entry journal.Entry) (*plan, error) {
	request, err := c.Backend.Restore(entry.Request, entry.Secret)
	if err != nil {
		return nil, err
	}
	for _, superseded := range entry.Superseded {
		if _, err := c.Backend.Restore(superseded, entry.Secret); err != nil {
			return nil, err
		}
	}
	class := entry.Volume.Spec.StorageClassName
	return &plan{request: request, volume: entry.Volume, selected: entry.Node, class: class}, nil
}

// rejectEntry moves an unusable entry to the unresolved ones. For an approved entry it only
// logs: the journal may hold its lock during the approval.
func (c *Controller) rejectEntry(ctx context.Context, entry journal.Entry, claim *v1.PersistentVolumeClaim,
	reason error) error {
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
		logger.Error(err, "Moving an unusable entry of the provisioning journal failed, trying again later", "wait",
			c.Timeouts.Rescan)
	}
	return err
}

// errServedMeanwhile: the move of the rejected entry would remove the entry of an open call, which alone knows of
// the disk.
var errServedMeanwhile = errors.New("the claim of the entry has another entry by now")

// inherit records an inherited entry, unless this process has newer facts. The request is repeated also if the
// volume was being discarded, and DeleteVolume is never called by the handle in the entry: since then the disk may
// be gone and its handle be that of another volume, or its claim may use it again, as after a restore of etcd.
func (r *claimRecord) inherit(entry journal.Entry, claim *v1.PersistentVolumeClaim, planned *plan, unresolved bool) {
	if r.entry.state != provision.NoEntry || r.request.creation != provision.NotRequested {
		r.entry.resumed = r.entry.resumed || entry.Unresolved != nil
		return
	}
	r.entry.state = provision.Inherited
	if entry.CustodyBroken {
		// Another program led meanwhile. It may have recorded the disk, and its user may have kept it: a call for a
		// claim that is gone would take the disk for unrecorded.
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
