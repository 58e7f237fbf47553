package cloning

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/controller/waiting"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/protection"
)

// tracking has users told about source claims whose deletion waits.
type tracking struct {
	waiting *waiting.Tracker
	// serves reports whether this process creates the volume of the claim: every provisioner
	// caches the clones of all drivers.
	serves func(claim *v1.PersistentVolumeClaim) bool
}

// TrackWaiting has the tracker told about source claims whose deletion waits for clones that
// this process serves. It is called before Watch.
func (c *Controller) TrackWaiting(tracker *waiting.Tracker, serves func(claim *v1.PersistentVolumeClaim) bool) {
	c.tracking = tracking{tracker, serves}
}

// trackWait tracks the claim if its deletion waits for a clone that this process serves.
func (c *Controller) trackWait(claim *v1.PersistentVolumeClaim, state protection.CloneSourceState) {
	_, waits := c.cloneRunning(claim)
	if !waits || !state.Deleting || !state.Protected {
		c.tracking.waiting.Clear(claim.UID, finalizer.CloneSource)
		return
	}
	c.tracking.waiting.Wait(waiting.Deletion{
		Object: waiting.ClaimReference(claim), Finalizer: finalizer.CloneSource,
		Since: waiting.ClaimSince(claim), Reason: blocker.CloneRunning,
		Blocker: func() (blocker.Blocker, bool) { return c.cloneRunning(claim) },
		Exists: func() bool {
			now := controller.Lookup[*v1.PersistentVolumeClaim](c.claims, controller.Key(claim))
			return now != nil && now.UID == claim.UID
		},
	})
}

// cloneRunning returns a clone that the deletion of the claim waits for, or false if this
// process serves none.
func (c *Controller) cloneRunning(claim *v1.PersistentVolumeClaim) (blocker.Blocker, bool) {
	keys, err := c.claims.GetIndexer().IndexKeys(bySource, controller.Key(claim))
	if err != nil || c.tracking.serves == nil {
		return blocker.Blocker{}, false
	}
	slices.Sort(keys)
	for _, key := range keys {
		clone := controller.Lookup[*v1.PersistentVolumeClaim](c.claims, key)
		if clone == nil || !c.tracking.serves(clone) {
			continue
		}
		return blocker.Blocker{
			Object:    blocker.Object{Kind: "PersistentVolumeClaim", Namespace: clone.Namespace, Name: clone.Name, UID: string(clone.UID)},
			Finalizer: string(finalizer.CloneSource), Reason: blocker.CloneRunning, Verdict: blocker.Waiting,
			Holder: "PersistentVolumeClaim " + key + ", which is cloned from the claim",
			Next:   fmt.Sprintf("kubectl describe pvc %s -n %s", clone.Name, clone.Namespace),
		}, true
	}
	return blocker.Blocker{}, false
}
