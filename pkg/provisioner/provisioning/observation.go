package provisioning

import (
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/provisioner/backend"
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

// updateRecord changes the record of the claim.
func (c *Controller) updateRecord(o *observation, change func(*claimRecord)) {
	c.memory.update(o.subject(), o.name, change)
}

// releaseHandle ends the reservation of the created volume's handle.
func (c *Controller) releaseHandle(r claimRecord) {
	if r.disk.volume != nil {
		c.memory.release(c.Deletion.HandleOf(r.disk.volume))
	}
}

// afterCall returns the observation after a call of the driver.
func (o *observation) afterCall(cause provision.Cause, err error) *observation {
	after := o.next(o.claim)
	after.called, after.plan, after.cause, after.err = true, nil, cause, err
	return after
}

// next returns the observation after a step: live reads must be repeated.
func (o *observation) next(claim *v1.PersistentVolumeClaim) *observation {
	after := *o
	after.claim, after.volume, after.read, after.nodeRead = claim, nil, provision.Cached, false
	return &after
}

func (o *observation) subject() subject {
	return subject{uid: o.claim.UID, key: keyOf(controller.Key(o.claim), o.claim.UID)}
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

// keyOf returns the workqueue key of a claim. The UID distinguishes claims that had the same
// name.
func keyOf(claim string, uid types.UID) string {
	return claim + "/" + string(uid)
}

// isFresh reports whether a live read of the selected node is unnecessary: the claim came by a
// watch event, and it has no earlier call, no entry and no PersistentVolume.
func (c *Controller) isFresh(o *observation) bool {
	r := o.record
	return !o.gone && c.Streamed != nil && c.Streamed(o.claim.ResourceVersion) &&
		!r.claim.requested && !r.object.recorded && r.entry.state == provision.NoEntry && o.claim.Spec.VolumeName == "" &&
		controller.Lookup[*v1.PersistentVolume](c.Volumes, o.name) == nil
}

// isMade reports whether a volume of the claim is certainly one of this process's requests: the creation of the
// claim was seen, no entry of it was inherited, and no PersistentVolume of it was seen. A restore of etcd brings
// back claims that wait although their disks are full of data. CreateVolume finds such a disk by its name, and
// it was discarded as unusable (decision 25).
func (c *Controller) isMade(o *observation) bool {
	r := o.record
	return c.Creations.Has(o.claim.UID) && !r.claim.inherited && !r.object.recorded
}

// serverOf returns which process serves the claim. This process finishes its own requests, even if another node
// is selected meanwhile: no other process can find the disk that they may have made here.
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

// isPerNode reports whether each node has a process of its own, which serves the claims of the node. Another
// process never repeats or forgets a request of this one.
func (c *Controller) isPerNode() bool {
	return c.Scope.Node() != ""
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

func (c *Controller) classOf(claim *v1.PersistentVolumeClaim) *storagev1.StorageClass {
	return controller.Lookup[*storagev1.StorageClass](c.Classes, storage.ClaimClass(claim))
}

// isOpen reports whether a volume may exist for the node of the last request.
func isOpen(creation provision.Creation) bool {
	return creation == provision.Requested || creation == provision.FailedOnce || creation == provision.Created
}

// plan is a request and the PersistentVolume for the requested volume.
type plan struct {
	request backend.Request
	// volume is the PersistentVolume without the fields from the driver's response.
	volume *v1.PersistentVolume
	// selected is the selected node, "" for none; class is the name of the storage class.
	selected, class string
	// alternative: the request is a superseded one, sent because the existing volume does not
	// match the last request.
	alternative bool
	// keeps: the class says Retain now, whatever it said when the request was built.
	keeps bool
}

// retained returns the plan for a volume with the policy Retain. A claim that waits for the
// answer to an earlier request gets a volume that is not deleted by mistake.
func (p *plan) retained(honor bool) *plan {
	retained := *p
	retained.keeps, retained.volume = true, p.volume.DeepCopy()
	retained.assign(retained.volume, honor)
	return &retained
}

// assign sets the fields of the volume that do not depend on the storage system.
func (p *plan) assign(volume *v1.PersistentVolume, honor bool) {
	if p.keeps {
		volume.Spec.PersistentVolumeReclaimPolicy = v1.PersistentVolumeReclaimRetain
	}
	provision.AssignmentOf(p.volume).ApplyTo(volume, honor)
}

// withoutCredentials returns the plan without credentials, for the memory.
func (p *plan) withoutCredentials() *plan {
	without := *p
	without.request = p.request.WithoutCredentials()
	return &without
}

// equals reports whether both plans have the same request and reclaim policy.
func (p *plan) equals(other *plan) bool {
	return other != nil && p.request.Equal(other.request) &&
		p.volume.Spec.PersistentVolumeReclaimPolicy == other.volume.Spec.PersistentVolumeReclaimPolicy
}

// secret returns the identity of the request's secret, nil for a request without a secret.
func (p *plan) secret() *journal.Secret {
	_, secret := p.request.Stored()
	return secret
}

// stored returns the journal's form of the request.
func (p *plan) stored() journal.Request {
	request, _ := p.request.Stored()
	return request
}
