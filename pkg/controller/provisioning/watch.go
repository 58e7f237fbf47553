package provisioning

import (
	"fmt"
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/provision"
)

func (c *Controller) watch() error {
	if _, err := c.Claims.AddEventHandler(controller.OnChange(c.claimChanged, c.claimGone)); err != nil {
		return fmt.Errorf("add handler: %w", err)
	}
	if _, err := c.Volumes.AddEventHandler(controller.OnChange(c.volumeChanged, c.volumeGone)); err != nil {
		return fmt.Errorf("add handler: %w", err)
	}
	return c.watchClasses()
}

func (c *Controller) claimChanged(old, claim *v1.PersistentVolumeClaim) {
	s := subject{uid: claim.UID, key: keyOf(controller.Key(claim), claim.UID)}
	if c.serves(claim) && c.unasked(old, claim) {
		c.memory.note(s, c.VolumeName(claim), func(e *entry) { e.tell(provision.Never) })
	}
	if c.concerns(old, claim) {
		c.loop.Enqueue(s.key)
	}
}

// unasked says whether the hold came with this very version of the claim, and after
// this process had begun to work: then no process before it can have asked the driver,
// and one works at a time. A version that came by a list proves nothing: the hold may
// be older than it.
func (c *Controller) unasked(old, claim *v1.PersistentVolumeClaim) bool {
	started := c.started.Load()
	if e, _ := c.memory.of(claim.UID); e.told || started == nil || c.Streamed == nil || !held(claim) || old != nil && held(old) {
		return false
	}
	if c.ServedBy != nil && c.ServedBy(claim) != provision.ThisProcess {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(claim.ResourceVersion, *started)
	return err == nil && order > 0 && c.Streamed(claim.ResourceVersion)
}

// concerns says whether the change may lead to another decision. Those that this
// process writes itself do not: it knows them already.
func (c *Controller) concerns(old, claim *v1.PersistentVolumeClaim) bool {
	_, known := c.memory.of(claim.UID)
	switch {
	case known && old == nil:
		return true
	case !known && (!c.serves(claim) || claim.Spec.VolumeName != "" && !held(claim)):
		return false
	case old == nil:
		return true
	}
	return !maps.Equal(old.Annotations, claim.Annotations) || // names of secrets can be made of them
		old.Spec.VolumeName != claim.Spec.VolumeName ||
		(old.DeletionTimestamp == nil) != (claim.DeletionTimestamp == nil)
}

func held(claim *v1.PersistentVolumeClaim) bool {
	return finalizer.Has(claim.Finalizers, finalizer.Provisioning)
}

func (c *Controller) claimGone(claim *v1.PersistentVolumeClaim) {
	c.versions.Forget(claim.UID)
	c.Reporter.Forget(claim.UID)
	switch e, known := c.memory.of(claim.UID); {
	case known && e.claim != nil && (e.asked == provision.Pending || e.asked == provision.Made):
		c.loop.Enqueue(keyOf(controller.Key(claim), claim.UID))
	case known:
		c.memory.forget(claim.UID, c.VolumeName(claim))
	}
}

func (c *Controller) volumeChanged(_, volume *v1.PersistentVolume) {
	c.memory.saw(volume.Name)
	c.memory.release(c.Deletion.HandleOf(volume))
}

// volumeGone has a claim looked at again whose volume, or an impostor in its place,
// went away before it was bound.
func (c *Controller) volumeGone(volume *v1.PersistentVolume) {
	key := c.memory.saw(volume.Name)
	if ref := volume.Spec.ClaimRef; key == "" && ref != nil && c.Serves(volume.Annotations[binding.ProvisionedBy]) {
		key = keyOf(controller.ClaimKey(volume), ref.UID)
	}
	if key != "" {
		c.loop.Enqueue(key)
	}
}

// since is how long ago the start was, in seconds, for the metrics.
func since(start time.Time) float64 {
	return time.Since(start).Seconds()
}
