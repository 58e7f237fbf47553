package provisioning

import (
	"context"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// observation has the claim and the facts of this pass. The objects are read-only.
type observation struct {
	claim *v1.PersistentVolumeClaim
	// gone: the claim no longer exists; claim is the claim at the time of the last request.
	gone bool
	// name is the claim's volume name; volume is the PersistentVolume after a live read.
	name   string
	volume *v1.PersistentVolume
	read   provision.Read
	// record is the claim's record at the begin of the step.
	record claimRecord
	// nodeRead: the selected node, if any, was read live after the claim.
	nodeRead bool
	// plan is the request, nil if it is not built yet or cannot be built.
	plan *plan
	// called: the driver was called in this pass.
	called bool
	// cause is the cause of a failed pass; err is its error.
	cause provision.Cause
	err   error
	began time.Time
}

func (o *observation) subject() subject {
	return subject{uid: o.claim.UID, key: keyOf(controller.Key(o.claim), o.claim.UID)}
}

// keyOf returns the workqueue key of a claim. The UID distinguishes claims that had the same
// name.
func keyOf(claim string, uid types.UID) string {
	return claim + "/" + string(uid)
}

// claimOf returns the claim of the key from the cache, else from memory (gone), else nil.
func (c *Controller) claimOf(key string) (claim *v1.PersistentVolumeClaim, gone bool) {
	i := strings.LastIndex(key, "/")
	name, uid := key[:i], types.UID(key[i+1:])
	if claim := controller.Lookup[*v1.PersistentVolumeClaim](c.Claims, name); claim != nil && claim.UID == uid {
		return claim, false
	}
	r, _ := c.memory.lookup(uid)
	return r.claim.last, true
}

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

// isFresh reports whether a live read of the selected node is unnecessary: the claim came by a
// watch event, and it has no earlier call, no entry and no PersistentVolume.
func (c *Controller) isFresh(o *observation) bool {
	r := o.record
	return !o.gone && c.Streamed != nil && c.Streamed(o.claim.ResourceVersion) &&
		!r.claim.requested && !r.object.recorded && r.entry.state == provision.NoEntry && o.claim.Spec.VolumeName == "" &&
		controller.Lookup[*v1.PersistentVolume](c.Volumes, o.name) == nil
}

// isMade reports whether a volume of the claim is certainly one of this process's requests: the creation of the claim was
// seen, and no PersistentVolume of it. The volume of an older claim may hold data: a restore of etcd brings
// back claims whose disk was in use.
func (c *Controller) isMade(o *observation) bool {
	r := o.record
	return c.Creations.Has(o.claim.UID) && !r.claim.inherited && !r.object.recorded
}

// serverOf returns which process serves the claim. This process finishes its own requests,
// even if another node is selected meanwhile.
func (c *Controller) serverOf(o *observation) provision.Server {
	r := o.record
	if r.request.plan != nil || r.disk.volume != nil || r.entry.state != provision.NoEntry {
		return provision.ThisProcess
	}
	return c.selectedServer(o.claim)
}

// selectedServer returns the process of the node that is selected for the claim.
func (c *Controller) selectedServer(claim *v1.PersistentVolumeClaim) provision.Server {
	return provision.ServerOf(claim.Annotations[storage.AnnSelectedNode], c.Scope.Node())
}

// next returns the observation after a step: live reads must be repeated.
func (o *observation) next(claim *v1.PersistentVolumeClaim) *observation {
	after := *o
	after.claim, after.volume, after.read, after.nodeRead = claim, nil, provision.Cached, false
	return &after
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

// isRefused reports whether the request could not be built in this pass.
func (o *observation) isRefused() bool {
	switch o.cause {
	case provision.RequestFailed, provision.OtherProvisioner, provision.OtherProvisionerUnnamed:
		return true
	case provision.NoCause, provision.CallFailed, provision.CallInfeasible, provision.CallIgnored, provision.VolumeDiscarded:
	}
	return false
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

// isForOther reports whether a volume may exist for another node than the selected one. A request without
// an answer counts for a limited time, unless the process of the selected node serves the claim then.
func (c *Controller) isForOther(r claimRecord, node string) bool {
	return isOpen(r.request.creation) && r.claim.node != node && (c.isPerNode() || !r.isLongRequested(c.Timeouts.RepeatedFailure))
}

// isPerNode reports whether each node has a process of its own, which serves the claims of the node. Another
// process never repeats or forgets a request of this one.
func (c *Controller) isPerNode() bool {
	return c.Scope.Node() != ""
}

// isOpen reports whether a volume may exist for the node of the last request.
func isOpen(creation provision.Creation) bool {
	return creation == provision.Requested || creation == provision.FailedOnce || creation == provision.Created
}

// isBoundOrLost reports whether the claim is, or was, bound to the volume.
func isBoundOrLost(claim *v1.PersistentVolumeClaim, volume string) bool {
	_, bound := claim.Annotations[storage.AnnBindCompleted]
	return claim.Spec.VolumeName == volume && (bound || claim.Status.Phase == v1.ClaimBound || claim.Status.Phase == v1.ClaimLost)
}

// isOurs reports whether the claim's provisioner is the driver, or an in-tree plugin with
// the migrated-to annotation for the driver.
func (c *Controller) isOurs(claim *v1.PersistentVolumeClaim) bool {
	name, driver := storage.ClaimProvisioner(claim), c.Backend.Name()
	return name == driver || c.Scope.Serves(name) && claim.Annotations[storage.AnnMigratedTo] == driver
}

func (c *Controller) waitsForFirstConsumer(claim *v1.PersistentVolumeClaim) bool {
	class := c.classOf(claim)
	return class != nil && storage.WaitsForFirstConsumer(class)
}

// retains reports whether the claim's class, which may be a new one of its name, says now
// that volumes are kept.
func (c *Controller) retains(claim *v1.PersistentVolumeClaim) bool {
	class := c.classOf(claim)
	return class != nil && c.Scope.Serves(class.Provisioner) && ptr.Deref(class.ReclaimPolicy, v1.PersistentVolumeReclaimDelete) == v1.PersistentVolumeReclaimRetain
}

func (c *Controller) classOf(claim *v1.PersistentVolumeClaim) *storagev1.StorageClass {
	return controller.Lookup[*storagev1.StorageClass](c.Classes, storage.ClaimClass(claim))
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
