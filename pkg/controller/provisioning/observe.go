package provisioning

import (
	"errors"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/provision"
)

// observation is a claim and what this pass has found out. The objects are never
// changed.
type observation struct {
	claim *v1.PersistentVolumeClaim
	// gone: the claim no longer exists; it is as it was when the driver was asked.
	gone bool
	// name is the name of the claim's volume, volume what was read under it.
	name   string
	volume *v1.PersistentVolume
	read   provision.Read
	// plan is the request, refused why it cannot be built.
	plan    *plan
	refused error
	began   time.Time
}

func (o *observation) subject() subject {
	return subject{uid: o.claim.UID, key: keyOf(controller.Key(o.claim), o.claim.UID)}
}

// keyOf is the key of a claim in the queue: what has another UID is another claim.
func keyOf(claim string, uid types.UID) string {
	return claim + "/" + string(uid)
}

// claimOf returns the claim with the key from the cache, or as it is remembered if
// it is gone, or nil.
func (c *Controller) claimOf(key string) (claim *v1.PersistentVolumeClaim, gone bool) {
	i := strings.LastIndex(key, "/")
	name, uid := key[:i], types.UID(key[i+1:])
	if claim := cached[*v1.PersistentVolumeClaim](c.Claims, name); claim != nil && claim.UID == uid {
		return claim, false
	}
	e, _ := c.memory.of(uid)
	return e.claim, true
}

// exists says whether there is a claim to look at, or one that is remembered.
func (c *Controller) exists(key string) bool {
	claim, _ := c.claimOf(key)
	return claim != nil
}

// observe returns nil if the claim is gone and nothing of it is remembered.
func (c *Controller) observe(key string) (*observation, error) {
	claim, gone := c.claimOf(key)
	if claim == nil {
		return nil, nil
	}
	if _, known := c.memory.of(claim.UID); !known && !c.serves(claim) {
		return nil, nil // its hold, if it has one, is somebody else's
	}
	if !gone && !c.versions.Fresh(claim) {
		return nil, controller.ErrLagging
	}
	o := &observation{claim: claim, gone: gone, name: c.VolumeName(claim), began: time.Now()}
	if e, _ := c.memory.of(claim.UID); e.asked == provision.Pending {
		o.plan = e.plan
	}
	return o, nil
}

// serverOf says who serves the claim as it was last read. What was begun here ends
// here.
func (c *Controller) serverOf(claim *v1.PersistentVolumeClaim, e entry) provision.Server {
	if c.ServedBy == nil || e.plan != nil || e.made != nil {
		return provision.ThisProcess
	}
	return c.ServedBy(claim)
}

// next is the observation of the claim as it is after a step.
func (o *observation) next(claim *v1.PersistentVolumeClaim) *observation {
	after := *o
	after.claim, after.volume, after.read = claim, nil, provision.Cached
	return &after
}

func (c *Controller) stateOf(o *observation) provision.State {
	s := provision.State{
		Holds: c.Holds,
		Held:  !o.gone && finalizer.Has(o.claim.Finalizers, finalizer.Provisioning),
		Want:  c.wantOf(o),
		Known: c.knownOf(o),
		Read:  o.read,
	}
	switch e, _ := c.memory.of(o.claim.UID); {
	case e.told:
		s.Asked = e.asked
	case s.Held:
		s.Asked = provision.Perhaps
	}
	switch {
	case o.refused != nil && c.neverPossible(o):
		s.Prepared = provision.Impossible
	case o.refused != nil:
		s.Prepared = provision.Refused
	case o.plan != nil:
		s.Prepared = provision.Ready
	}
	return s
}

// neverPossible says whether the request was refused for what has been so as long as
// the claim exists: by what does not change in the claim, or by a class that is older.
func (c *Controller) neverPossible(o *observation) bool {
	var refusal *provision.Refusal
	var foreign *provision.NotOurs
	if lasting := errors.As(o.refused, &refusal) && refusal.Lasting; !lasting && !errors.As(o.refused, &foreign) {
		return false
	}
	class := c.classOf(o.claim)
	return class != nil && !o.claim.CreationTimestamp.Before(&class.CreationTimestamp)
}

func (c *Controller) wantOf(o *observation) provision.Want {
	e, _ := c.memory.of(o.claim.UID)
	node := o.claim.Annotations[binding.SelectedNode]
	asked, server := e.plan != nil || e.made != nil, c.serverOf(o.claim, e)
	switch {
	case server == provision.OtherProcess:
		return provision.Unserved
	case o.gone || o.claim.DeletionTimestamp != nil || o.claim.Spec.VolumeName != "":
		return provision.Unwanted
	case e.useless != "", asked && e.node != node:
		return provision.Misplaced
	case server == provision.NoProcess, !c.serves(o.claim):
		return provision.Unserved
	case node != "" && node == e.unfit:
		return provision.Misplaced
	case node == "" && c.delays(o.claim):
		return provision.Unserved
	}
	return provision.Wanted
}

// serves says whether the claim names the driver, or the in-tree plugin that the
// driver serves and that was told to leave the claim to it.
func (c *Controller) serves(claim *v1.PersistentVolumeClaim) bool {
	name, driver := provisionerOf(claim), c.Provisioner.Driver.Name()
	return name == driver || c.Serves(name) && claim.Annotations[binding.MigratedTo] == driver
}

func provisionerOf(claim *v1.PersistentVolumeClaim) string {
	if name, named := claim.Annotations[binding.StorageProvisioner]; named {
		return name
	}
	return claim.Annotations[binding.BetaStorageProvisioner]
}

func (c *Controller) delays(claim *v1.PersistentVolumeClaim) bool {
	class := c.classOf(claim)
	return class != nil && class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
}

func (c *Controller) classOf(claim *v1.PersistentVolumeClaim) *storagev1.StorageClass {
	return cached[*storagev1.StorageClass](c.Classes, binding.ClaimClass(claim))
}

// knownOf prefers what was read, then what this process has recorded and the cache
// has not heard of, then the cache.
func (c *Controller) knownOf(o *observation) provision.Known {
	e, _ := c.memory.of(o.claim.UID)
	if o.read == provision.BothRead {
		return c.relation(o.volume, o.claim, e)
	}
	if o.claim.Spec.VolumeName != "" {
		bound := cached[*v1.PersistentVolume](c.Volumes, o.claim.Spec.VolumeName)
		if bound != nil && binding.MadeFor(bound, o.claim) && c.relation(bound, o.claim, e) == provision.Recorded {
			return provision.Recorded
		}
	}
	switch volume := cached[*v1.PersistentVolume](c.Volumes, o.name); {
	case volume != nil:
		return c.relation(volume, o.claim, e)
	case e.saved && !e.seen:
		return provision.Recorded
	case e.taken:
		return provision.Impostor
	}
	return provision.Absent
}

// relation compares the volume under the name of the claim's with the one that was
// made, if its handle is known.
func (c *Controller) relation(volume *v1.PersistentVolume, claim *v1.PersistentVolumeClaim, e entry) provision.Known {
	switch {
	case volume == nil:
		return provision.Absent
	case volume.Spec.ClaimRef == nil || volume.Spec.ClaimRef.UID != claim.UID:
		return provision.Impostor
	case e.made != nil && !c.Deletion.SameDisk(e.made, volume):
		return provision.Impostor
	}
	return provision.Recorded
}
