package provisioning

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// observe returns nil for an unknown claim, and for a claim of another provisioner without
// a record.
func (c *Controller) observe(ctx context.Context, key string) (*observation, error) {
	claim, gone := c.claimOf(key)
	if claim == nil {
		return nil, nil
	}
	r, known := c.memory.lookup(claim.UID)
	if !known && !c.isOurs(claim) {
		return nil, nil
	}
	if !gone && !c.versions.IsFresh(claim) {
		return nil, c.versions.AwaitClaim(ctx, c.Client, claim)
	}
	return &observation{claim: claim, gone: gone, name: c.Scope.VolumeName(claim), record: r, began: time.Now()}, nil
}

// stateOf copies the claim's record into the observation, and returns the claim's state.
func (c *Controller) stateOf(o *observation) provision.State {
	o.record, _ = c.memory.lookup(o.claim.UID)
	r, want := o.record, c.wantOf(o)
	s := provision.State{
		Want:          want,
		Record:        c.recordOf(o),
		Creation:      r.request.creation,
		Entry:         entryOf(o),
		Read:          o.read,
		Journaled:     c.journaled.Load() && r.request.bypass == "",
		Made:          c.isMade(o),
		Unusable:      r.disk.unusable != "",
		MayBeKept:     r.mayBeKept(),
		Unannounced:   r.disk.volume != nil && !r.entry.announced,
		Stored:        r.request.plan != nil,
		NodeRead:      o.nodeRead,
		Called:        o.called,
		LongRequested: r.isLongRequested(c.Timeouts.RepeatedFailure) && (want != provision.Misplaced || !c.isPerNode() || r.claim.unfit != "" && r.claim.unfit == o.claim.Annotations[storage.AnnSelectedNode]),
		WriteOpen:     r.object.isWriteOpen(c.Timeouts.OpenWrite),
		Leading:       c.Leading == nil || c.Leading(),
		Overdue:       r.request.answers.isOverdue(c.Timeouts.Unresolved),
	}
	switch {
	case o.plan != nil:
		s.Prepared = provision.Ready
	case o.isRefused():
		s.Prepared = provision.Refused
	}
	return s
}

func (c *Controller) wantOf(o *observation) provision.Want {
	r := o.record
	node, server := o.claim.Annotations[storage.AnnSelectedNode], c.serverOf(o)
	switch {
	case !o.gone && isBoundOrLost(o.claim, o.name):
		return provision.BoundOrLost
	case server == provision.OtherProcess:
		return provision.Unserved
	case o.gone || o.claim.DeletionTimestamp != nil || o.claim.Spec.VolumeName != "":
		return provision.Unwanted
	case r.disk.unusable != "", c.isForOther(r, node):
		return provision.Misplaced
	case !isOpen(r.request.creation) && c.selectedServer(o.claim) != provision.ThisProcess: // an open call is finished here
		return provision.Unserved
	case !c.isOurs(o.claim):
		return provision.Unserved
	case node != "" && node == r.claim.unfit:
		return provision.Misplaced
	case node == "" && c.waitsForFirstConsumer(o.claim):
		return provision.Unserved
	}
	return provision.Wanted
}

// isBoundOrLost reports whether the claim is, or was, bound to the volume.
func isBoundOrLost(claim *v1.PersistentVolumeClaim, volume string) bool {
	_, bound := claim.Annotations[storage.AnnBindCompleted]
	return claim.Spec.VolumeName == volume && (bound || claim.Status.Phase == v1.ClaimBound || claim.Status.Phase == v1.ClaimLost)
}

// isForOther reports whether a volume may exist for another node than the selected one. A request without
// an answer counts for a limited time, unless the process of the selected node serves the claim then.
func (c *Controller) isForOther(r claimRecord, node string) bool {
	return isOpen(r.request.creation) && r.claim.node != node && (c.isPerNode() || !r.isLongRequested(c.Timeouts.RepeatedFailure))
}

// recordOf returns whether a PersistentVolume records the claim's volume: by a live read,
// else by the cache, else by the writes of this process.
func (c *Controller) recordOf(o *observation) storage.Record {
	r := o.record
	if o.read == provision.BothRead {
		return c.recordBy(o.volume, o)
	}
	switch volume := controller.Lookup[*v1.PersistentVolume](c.Volumes, o.name); {
	case volume != nil:
		return c.recordBy(volume, o)
	case r.object.isAwaited() && time.Since(r.object.savedAt) < c.Timeouts.Unseen:
		return storage.RecordPresent
	case r.object.conflict:
		return storage.RecordConflict
	}
	return storage.RecordAbsent
}

// recordBy returns whether the PersistentVolume, nil for none, records the claim's volume.
func (c *Controller) recordBy(volume *v1.PersistentVolume, o *observation) storage.Record {
	record := storage.RecordOf(volume, o.claim.UID)
	if record == storage.RecordPresent && !c.Scope.Reaches(volume) {
		return storage.RecordElsewhere
	}
	return record
}

// entryOf returns the state of the journal entry: Outdated if the plan has another request, or
// is for another node.
func entryOf(o *observation) provision.Entry {
	r := o.record
	isSame := o.plan == nil || o.plan.alternative || o.plan.equals(r.entry.stored) && o.plan.selected == r.entry.stored.selected
	if r.entry.state == provision.Durable && !isSame {
		return provision.Outdated
	}
	return r.entry.state
}

// isRefused reports whether the request could not be built in this pass.
func (o *observation) isRefused() bool {
	switch o.cause {
	case provision.RequestFailed, provision.OtherProvisioner, provision.OtherProvisionerUnnamed:
		return true
	case provision.NoCause, provision.CallFailed, provision.CallInfeasible, provision.CallIgnored, provision.VolumeDiscarded:
	}
	return false
}
