package reclaimer

import (
	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/controller/waiting"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/reclaim/plugin"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// trackWait tracks a volume whose data is also the data of another volume. Recycling is no
// deletion.
func (c *Controller) trackWait(o observation, reason plugin.Reason) {
	if reason == plugin.HandleShared && policyOf(o.volume) == storage.PolicyDelete {
		c.trackDeletion(o.volume, blocker.HandleShared, true)
		return
	}
	c.Waiting.Clear(o.volume.UID, finalizer.InTree)
}

// trackFailed tracks a volume that no plugin here can delete.
func (c *Controller) trackFailed(volume *v1.PersistentVolume, reason plugin.Reason) {
	if reason == plugin.NoPlugin && policyOf(volume) == storage.PolicyDelete {
		c.trackDeletion(volume, blocker.DriverMissing, true)
	}
}

// trackDeletion has users told that the deletion of the volume waits. Reported: a more exact
// event was just sent.
func (c *Controller) trackDeletion(volume *v1.PersistentVolume, reason blocker.Reason, reported bool) {
	c.Waiting.Wait(waiting.Deletion{
		Object: waiting.VolumeReference(volume), Finalizer: finalizer.InTree,
		Since: waiting.VolumeSince(volume), Reason: reason, Reported: reported,
		Blocker: func() (blocker.Blocker, bool) { return c.pluginDeletes(volume, reason), true },
		Exists:  func() bool { return c.Caches.HasVolume(volume) },
	})
}

// pluginDeletes returns the plugin that the deletion of the volume waits for.
func (c *Controller) pluginDeletes(volume *v1.PersistentVolume, reason blocker.Reason) blocker.Blocker {
	verdict := blocker.Stuck
	if reason == blocker.DriverDeletes {
		verdict = blocker.Waiting
	}
	return blocker.Blocker{
		Object:    blocker.Object{Kind: "PersistentVolume", Name: volume.Name, UID: string(volume.UID)},
		Finalizer: string(finalizer.InTree), Reason: reason, Verdict: verdict,
		Holder: "the in-tree plugin " + c.deleterName(volume), Next: "kubectl exeunt why pv/" + volume.Name,
	}
}
