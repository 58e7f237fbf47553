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
		LongRequested: c.mayBuildAnew(o, want),
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

// wantOf returns what the claim needs from this process now.
func (c *Controller) wantOf(o *observation) provision.Want {
	r := o.record
	node, server := o.claim.Annotations[storage.AnnSelectedNode], c.serverOf(o)
	switch {
	case !o.gone && isBoundOrLost(o.claim, o.name):
		// Pods have used the disk, even if its PersistentVolume is gone: deleted by force, or lost with etcd.
		// CreateVolume would find the disk by its name, or give the claim an empty one, and after a restart
		// such a disk was once taken for unused and deleted.
		return provision.BoundOrLost
	case server == provision.OtherProcess:
		return provision.Unserved
	case o.gone || o.claim.DeletionTimestamp != nil || o.claim.Spec.VolumeName != "":
		return provision.Unwanted
	case r.disk.unusable != "", c.isForOther(r, node):
		return provision.Misplaced
	case !isOpen(r.request.creation) && c.selectedServer(o.claim) != provision.ThisProcess:
		// An open call is finished here, by the case before.
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
	phase := claim.Status.Phase
	return claim.Spec.VolumeName == volume && (bound || phase == v1.ClaimBound || phase == v1.ClaimLost)
}

// isForOther reports whether a volume may exist for another node than the selected one. A request without
// an answer counts for a limited time. With a process on each node it counts for ever: after that time this one
// called its driver for the node that was selected since, and could take the claim from the process of that node.
func (c *Controller) isForOther(r claimRecord, node string) bool {
	return isOpen(r.request.creation) && r.claim.node != node &&
		(c.isPerNode() || !r.isLongRequested(c.Timeouts.RepeatedFailure))
}

// mayBuildAnew reports whether the open request has no answer for so long that another one may be built beside
// it. With a process on each node that is no way to another node, unless the own one is full: the process of
// that node knows nothing of the disk that the open request may have made here, and nobody would find it.
func (c *Controller) mayBuildAnew(o *observation, want provision.Want) bool {
	unfit, node := o.record.claim.unfit, o.claim.Annotations[storage.AnnSelectedNode]
	return o.record.isLongRequested(c.Timeouts.RepeatedFailure) &&
		(want != provision.Misplaced || !c.isPerNode() || unfit != "" && unfit == node)
}

// recordOf returns whether a PersistentVolume records the claim's volume: by a live read,
// else by the cache, else by the writes of this process. Handles are not compared: a driver may spell one
// handle in two ways, and the recorded disk of a claim was taken for another one, and discarded.
func (c *Controller) recordOf(o *observation) storage.Record {
	r := o.record
	if o.read == provision.BothRead {
		return c.recordBy(o.volume, o)
	}
	switch volume := controller.Lookup[*v1.PersistentVolume](c.Volumes, o.name); {
	case volume != nil:
		return c.recordBy(volume, o)
	case r.object.isAwaited() && time.Since(r.object.savedAt) < c.Timeouts.Unseen:
		// Not for ever: a PersistentVolume that is deleted before the cache has it leads to no event, and its
		// claim would wait for a volume that nobody creates.
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
		// The claim went to another node while a request here had no answer. Its PersistentVolume says nothing of
		// a disk on this node: taken for the record of it, it ended the entry, which alone knew of the disk.
		return storage.RecordElsewhere
	}
	return record
}

// entryOf returns the state of the journal entry: Outdated if the plan has another request, or
// is for another node.
func entryOf(o *observation) provision.Entry {
	r := o.record
	stored := r.entry.stored
	isSame := o.plan == nil || o.plan.alternative || o.plan.equals(stored) && o.plan.selected == stored.selected
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
	case provision.NoCause, provision.CallFailed, provision.CallInfeasible, provision.CallIgnored,
		provision.VolumeDiscarded:
	}
	return false
}
