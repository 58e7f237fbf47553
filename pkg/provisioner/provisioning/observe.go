package provisioning

import (
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// observation is a claim and what this pass has found out. The objects are never
// changed.
type observation struct {
	claim *v1.PersistentVolumeClaim
	// gone: the claim no longer exists; it is as it was at the last request.
	gone bool
	// name is the name of the claim's volume, volume what was read under it.
	name   string
	volume *v1.PersistentVolume
	read   provision.Read
	// record is what was remembered of the claim when the step began.
	record claimRecord
	// nodeRead: the selected node was read live after the claim, or none is selected.
	nodeRead bool
	// plan is the request, nil if it was not built or cannot be.
	plan *plan
	// called: the driver was called in this pass.
	called bool
	// cause is what kept the pass from providing the volume, err its error.
	cause provision.Cause
	err   error
	began time.Time
}

func (o *observation) subject() subject {
	return subject{uid: o.claim.UID, key: keyOf(controller.Key(o.claim), o.claim.UID)}
}

// keyOf is the key of a claim in the queue. A claim of the same name with another UID
// is another claim.
func keyOf(claim string, uid types.UID) string {
	return claim + "/" + string(uid)
}

// claimOf returns the claim with the key from the cache, or from memory if it is
// gone, or nil.
func (c *Controller) claimOf(key string) (claim *v1.PersistentVolumeClaim, gone bool) {
	i := strings.LastIndex(key, "/")
	name, uid := key[:i], types.UID(key[i+1:])
	if claim := controller.Lookup[*v1.PersistentVolumeClaim](c.Claims, name); claim != nil && claim.UID == uid {
		return claim, false
	}
	r, _ := c.memory.of(uid)
	return r.claim, true
}

// observe returns nil if the claim is gone and nothing is known of it.
func (c *Controller) observe(key string) (*observation, error) {
	claim, gone := c.claimOf(key)
	if claim == nil {
		return nil, nil
	}
	r, known := c.memory.of(claim.UID)
	if !known && !c.serves(claim) && (!hasOrphanedFinalizer(claim) || !c.servesClassOf(claim)) {
		return nil, nil
	}
	if !gone && !c.versions.IsFresh(claim) {
		return nil, controller.ErrStaleCache
	}
	o := &observation{claim: claim, gone: gone, name: c.VolumeName(claim), record: r, began: time.Now()}
	if c.isFresh(o) {
		o.read = provision.ClaimRead
	}
	return o, nil
}

// isFresh reports whether a live read of the claim would say nothing new: its version
// came by the watch, and neither a call nor a PersistentVolume is known.
func (c *Controller) isFresh(o *observation) bool {
	r := o.record
	return !o.gone && c.Streamed != nil && c.Streamed(o.claim.ResourceVersion) &&
		!r.requested && !r.recorded && r.entry == provision.NoEntry && o.claim.Spec.VolumeName == "" &&
		controller.Lookup[*v1.PersistentVolume](c.Volumes, o.name) == nil
}

// isLongRequested reports whether a request has been open for so long that a living claim's
// may be built again. The entry keeps the old one, too.
func (c *Controller) isLongRequested(r claimRecord) bool {
	return r.creation == provision.Requested && r.entry == provision.Durable && time.Since(r.openedAt) >= c.Timeouts.RepeatedFailure
}

// serverOf returns who serves the claim. What was begun here ends here.
func (c *Controller) serverOf(o *observation) provision.Server {
	r := o.record
	if c.ServedBy == nil || r.plan != nil || r.volume != nil || r.entry != provision.NoEntry {
		return provision.ThisProcess
	}
	return c.ServedBy(o.claim)
}

// next is the observation of the claim as it is after a step.
func (o *observation) next(claim *v1.PersistentVolumeClaim) *observation {
	after := *o
	after.claim, after.volume, after.read, after.nodeRead = claim, nil, provision.Cached, false
	return &after
}

// stateOf takes the snapshot of what is remembered, which the step works on, and returns
// the state of the claim.
func (c *Controller) stateOf(o *observation) provision.State {
	o.record, _ = c.memory.of(o.claim.UID)
	r := o.record
	s := provision.State{
		Want:          c.wantOf(o),
		Record:        c.recordOf(o),
		Creation:      r.creation,
		Entry:         entryOf(o),
		Read:          o.read,
		Journaled:     c.journaled.Load() && r.bypass == "",
		Unusable:      r.unusable != "",
		OldFinalizer:  !o.gone && finalizer.Has(o.claim.Finalizers, finalizer.Provisioning) && c.serverOf(o) != provision.OtherProcess,
		Stored:        r.plan != nil,
		NodeRead:      o.nodeRead,
		Called:        o.called,
		LongRequested: c.isLongRequested(r),
		Leading:       c.Leading == nil || c.Leading(),
		Overdue:       r.unresolved != "" && time.Since(r.unresolvedAt) >= c.Timeouts.Unresolved,
	}
	switch {
	case o.plan != nil:
		s.Prepared = provision.Ready
	case o.isRefused():
		s.Prepared = provision.Refused
	}
	return s
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

// entryOf returns what the journal has, compared with the request that is to be sent.
func entryOf(o *observation) provision.Entry {
	r := o.record
	if r.entry == provision.Durable && o.plan != nil && !o.plan.alternative && !o.plan.equals(r.stored) {
		return provision.Outdated
	}
	return r.entry
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
	case r.unusable != "", isOpen(r.creation) && r.node != node:
		return provision.Misplaced
	case server == provision.NoProcess, !c.serves(o.claim):
		return provision.Unserved
	case node != "" && node == r.unfit:
		return provision.Misplaced
	case node == "" && c.delays(o.claim):
		return provision.Unserved
	}
	return provision.Wanted
}

// isOpen reports whether there is, or may be, a volume for the node of the last request.
func isOpen(creation provision.Creation) bool {
	return creation == provision.Requested || creation == provision.FailedOnce || creation == provision.Created
}

// concluded reports whether the claim is, or was, bound to the volume of its name.
func isBoundOrLost(claim *v1.PersistentVolumeClaim, volume string) bool {
	_, bound := claim.Annotations[storage.AnnBindCompleted]
	return claim.Spec.VolumeName == volume && (bound || claim.Status.Phase == v1.ClaimBound || claim.Status.Phase == v1.ClaimLost)
}

// serves reports whether the claim names the driver as its provisioner, or an in-tree
// plugin that the driver replaces, with the annotation migrated-to naming the driver.
func (c *Controller) serves(claim *v1.PersistentVolumeClaim) bool {
	name, driver := storage.ClaimProvisioner(claim), c.Backend.Name()
	return name == driver || c.Serves(name) && claim.Annotations[storage.AnnMigratedTo] == driver
}

// hasOrphanedFinalizer reports whether a deleted claim that names no provisioner waits for the
// finalizer of an earlier version. Backup tools restore finalizers, but not the
// annotation. The provisioner of its class removes the finalizer.
func hasOrphanedFinalizer(claim *v1.PersistentVolumeClaim) bool {
	return claim.DeletionTimestamp != nil && finalizer.Has(claim.Finalizers, finalizer.Provisioning) && storage.ClaimProvisioner(claim) == ""
}

func (c *Controller) servesClassOf(claim *v1.PersistentVolumeClaim) bool {
	class := c.classOf(claim)
	return class != nil && c.Serves(class.Provisioner)
}

func (c *Controller) delays(claim *v1.PersistentVolumeClaim) bool {
	class := c.classOf(claim)
	return class != nil && storage.WaitsForFirstConsumer(class)
}

func (c *Controller) classOf(claim *v1.PersistentVolumeClaim) *storagev1.StorageClass {
	return controller.Lookup[*storagev1.StorageClass](c.Classes, storage.ClaimClass(claim))
}

// recordOf prefers what was read live, then what this process wrote and the cache does
// not have yet, then the cache.
func (c *Controller) recordOf(o *observation) storage.Record {
	r := o.record
	if o.read == provision.BothRead {
		return storage.RecordOf(o.volume, o.claim.UID)
	}
	switch volume := controller.Lookup[*v1.PersistentVolume](c.Volumes, o.name); {
	case volume != nil:
		return storage.RecordOf(volume, o.claim.UID)
	case r.saved && !r.seen && time.Since(r.savedAt) < c.Timeouts.Unseen:
		return storage.RecordPresent
	case r.nameConflict:
		return storage.RecordConflict
	}
	return storage.RecordAbsent
}
