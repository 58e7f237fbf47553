package deletion

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/reclaim"
	"github.com/exeunt-io/exeunt/pkg/reclaim/external"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// The reasons of events that upstream has too: scripts and alerts match them.
const (
	volumeFailedDelete = "VolumeFailedDelete"
	volumeDelete       = "VolumeDelete"
)

// failed counts the failure and tells the user why the volume still exists; an
// object that merely changed meanwhile is not worth a word.
func (c *Controller) failed(volume *v1.PersistentVolume, err error) error {
	if !patch.IsStale(err) {
		c.Metrics.PersistentVolumeDeleteFailedTotal.WithLabelValues(volume.Spec.StorageClassName).Inc()
		c.Reporter.ReportAlways(volume, controller.WarningEvent(volumeFailedDelete, err.Error()))
	}
	return err
}

// report tells the user on whom a volume waits that should be gone, or that it
// will leave its data behind.
func (c *Controller) report(volume *v1.PersistentVolume, reason external.Reason) {
	switch others := c.sharing(volume); {
	case reason == external.HandleShared && len(others) > 0:
		c.Reporter.Report(volume, controller.WarningEvent(string(reason), fmt.Sprintf("The volume is not deleted, for volume %q has the same disk", others[0])))
	case reason == external.StillAttached:
		c.reportAttached(volume)
	case reason == external.TooLateToProtect:
		c.Reporter.Report(volume, controller.WarningEvent(string(reason), "The volume was deleted before its finalizer came. Its data is deleted once its claim is gone if a pv-controller that knows the annotation "+
			reclaim.Annotation+" holds the volume until then; beside any other its data will stay behind in the storage system"))
	}
}

// reportAttached names the nodes that the volume is attached to. The event is no
// warning: a pod and its claim are often deleted together, and detaching takes time.
func (c *Controller) reportAttached(volume *v1.PersistentVolume) {
	attachments, err := c.Attachments.GetIndexer().ByIndex(byVolume, volume.Name)
	if err != nil || len(attachments) == 0 { // the last one went a moment ago
		return
	}
	nodes := make([]string, 0, len(attachments))
	for _, object := range attachments {
		if attachment, ok := object.(*storagev1.VolumeAttachment); ok {
			nodes = append(nodes, "node "+attachment.Spec.NodeName)
		}
	}
	slices.Sort(nodes)
	c.Reporter.Report(volume, controller.NormalEvent(volumeDelete, fmt.Sprintf("persistentvolume %s is still attached to %s, waiting for detach", volume.Name, strings.Join(nodes, " and "))))
}

// reportLeak tells that a marked volume is gone and nobody has deleted its data:
// the component that released it does not know the mark.
func (c *Controller) reportLeak(volume *v1.PersistentVolume) {
	policy := storage.PolicyOf(volume.Spec.PersistentVolumeReclaimPolicy)
	pending := c.owns(volume) && policy == storage.PolicyDelete && reclaim.StatusOf(volume) == reclaim.StatusPending
	if !pending || c.memory.Get(volume.UID).volumeDeleted {
		return
	}
	handle := c.Deleter.HandleOf(volume)
	if volume.Spec.CSI != nil {
		handle = volume.Spec.CSI.VolumeHandle
	}
	c.Reporter.ReportAlways(volume, controller.WarningEvent(string(external.TooLateToProtect), fmt.Sprintf("The volume is gone and its data has stayed behind in the storage system as %q", handle)))
}
