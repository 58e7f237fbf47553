package deletion

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/reclaim"
)

// volumeFailedDelete is the reason of the event that upstream has too: scripts and
// alerts match it.
const volumeFailedDelete = "VolumeFailedDelete"

// failed counts the failure and tells the user why the volume still exists; an
// object that merely changed meanwhile is not worth a word.
func (c *Controller) failed(volume *v1.PersistentVolume, err error) error {
	if !patch.IsStale(err) {
		c.Metrics.PersistentVolumeDeleteFailedTotal.WithLabelValues(volume.Spec.StorageClassName).Inc()
		c.Reporter.Always(volume, controller.Warn(volumeFailedDelete, err.Error()))
	}
	return err
}

// report tells the user on whom a volume waits that should be gone, or that it
// will leave its data behind.
func (c *Controller) report(volume *v1.PersistentVolume, reason reclaim.Reason) {
	switch others := c.sharing(volume); {
	case reason == reclaim.HandleShared && len(others) > 0:
		c.Reporter.Report(volume, controller.Warn(string(reason), fmt.Sprintf("The volume is not deleted, for volume %q has the same handle", others[0])))
	case reason == reclaim.TooLateToProtect:
		c.Reporter.Report(volume, controller.Warn(string(reason), "The volume was deleted before its finalizer came; its data will stay behind in the storage system once the claim is gone"))
	}
}
