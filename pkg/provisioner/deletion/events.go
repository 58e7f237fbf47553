package deletion

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/reclaim"
	"github.com/exeunt-io/exeunt/pkg/reclaim/external"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// Event reasons as in external-provisioner: scripts and alerts match them.
const (
	volumeFailedDelete = "VolumeFailedDelete"
	volumeDelete       = "VolumeDelete"
)

// Writes, as events about refused writes name them.
const (
	addsFinalizer = "Adding the finalizer " + string(finalizer.External) +
		", which keeps the volume until its disk is deleted,"
	writesStatus = "Writing the annotation " + reclaim.Annotation
)

// countFailure counts the failure and reports it on the volume, unless the volume only
// changed before the write. It returns the error.
func (c *Controller) countFailure(volume *v1.PersistentVolume, err error) error {
	if !patch.IsStale(err) {
		c.Metrics.PersistentVolumeDeleteFailedTotal.WithLabelValues(volume.Spec.StorageClassName).Inc()
		c.Reporter.ReportFailure(volume, controller.WarningEvent(volumeFailedDelete, err.Error()))
	}
	return err
}

// report reports why a volume is not deleted, or that its data may not be deleted.
func (c *Controller) report(volume *v1.PersistentVolume, reason external.Reason) {
	switch reason {
	case external.HandleShared:
		if others := c.sharing(volume); len(others) > 0 {
			c.Reporter.Report(volume, controller.WarningEvent(string(reason),
				fmt.Sprintf("The disk is not deleted, because volume %q has the same disk, or a directory in it; if that volume is in use, set the policy of this one to Retain", others[0])))
		}
	case external.StillAttached:
		c.reportAttached(volume)
	case external.TooLateToProtect:
		c.Reporter.Report(volume, controller.WarningEvent(string(reason),
			"The volume was deleted before its finalizer was added. The driver deletes the data once the claim is gone if the pv-controller supports the annotation "+
				reclaim.Annotation+" and keeps the volume until then; with any other controller the data stays in the storage system"))
	default:
	}
}

// reportAttached reports the nodes that the volume is attached to. The event is Normal: a
// pod and its claim are often deleted together, and detaching takes time.
func (c *Controller) reportAttached(volume *v1.PersistentVolume) {
	attachments, err := c.Attachments.GetIndexer().ByIndex(byVolume, volume.Name)
	if err != nil || len(attachments) == 0 { // detached since the decision
		return
	}
	nodes := make([]string, 0, len(attachments))
	for _, object := range attachments {
		if attachment, ok := object.(*storagev1.VolumeAttachment); ok {
			nodes = append(nodes, "node "+attachment.Spec.NodeName)
		}
	}
	slices.Sort(nodes)
	c.Reporter.Report(volume, controller.NormalEvent(volumeDelete,
		fmt.Sprintf("persistentvolume %s is still attached to %s, waiting for detach", volume.Name,
			strings.Join(nodes, " and "))))
}

// reportLeak reports a volume with a pending status whose object was deleted before its
// data: the component that released the volume does not support the annotation.
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
	c.Reporter.ReportAlways(volume, controller.WarningEvent(string(external.TooLateToProtect),
		fmt.Sprintf("The PersistentVolume was deleted, and its data is still in the storage system as %q; delete the data there if nobody needs it", handle)))
}
