package snapshots

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/controller/waiting"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
)

// trackSwept tracks a snapshot of a sweep whose deletion waits for a claim that this process
// serves. Only sweeps see which snapshots are being deleted. It returns whether it waits.
func (c *Controller) trackSwept(snapshot metav1.Object) bool {
	if _, waits := c.snapshotRunning(controller.Key(snapshot)); !waits || snapshot.GetDeletionTimestamp() == nil {
		return false
	}
	key := controller.Key(snapshot)
	c.Waiting.Wait(waiting.Deletion{
		Object: referenceTo(snapshot), Finalizer: finalizer.SnapshotSource,
		Since: snapshot.GetDeletionTimestamp().Time, Reason: blocker.SnapshotRunning,
		Blocker: func() (blocker.Blocker, bool) { return c.snapshotRunning(key) },
	})
	return true
}

// forgetUnswept drops the tracked snapshots that the last sweep did not find.
func (c *Controller) forgetUnswept(found map[types.UID]bool) {
	for snapshot := range c.tracked {
		if !found[snapshot] {
			c.Waiting.Forget(snapshot)
		}
	}
	c.tracked = found
}

// alsoTrack adds snapshots that a sweep found before it failed: the next complete sweep forgets
// those that are gone.
func (c *Controller) alsoTrack(found map[types.UID]bool) {
	if c.tracked == nil {
		c.tracked = map[types.UID]bool{}
	}
	maps.Copy(c.tracked, found)
}

// snapshotRunning returns a claim that the deletion of the snapshot waits for, or false if
// this process serves none.
func (c *Controller) snapshotRunning(snapshot string) (blocker.Blocker, bool) {
	keys, err := c.Claims.GetIndexer().IndexKeys(bySnapshot, snapshot)
	if err != nil || c.Serves == nil {
		return blocker.Blocker{}, false
	}
	slices.Sort(keys)
	for _, key := range keys {
		claim := controller.Lookup[*v1.PersistentVolumeClaim](c.Claims, key)
		if claim == nil || !c.Serves(claim) {
			continue
		}
		return blocker.Blocker{
			Object:    blocker.Object{Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: string(claim.UID)},
			Finalizer: string(finalizer.SnapshotSource), Reason: blocker.SnapshotRunning, Verdict: blocker.Waiting,
			Holder: "PersistentVolumeClaim " + key + ", which is restored from the snapshot",
			Next:   fmt.Sprintf("kubectl describe pvc %s -n %s", claim.Name, claim.Namespace),
		}, true
	}
	return blocker.Blocker{}, false
}
