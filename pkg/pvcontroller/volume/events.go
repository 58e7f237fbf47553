package volume

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// Event reasons of kube-controller-manager.
const (
	volumeMismatch = "VolumeMismatch"
	recyclerPod    = "RecyclerPod"
)

// Writes, as events about refused writes name them.
const (
	writesMetadata    = "Writing the finalizers and annotations that say who deletes the disk"
	addsProtection    = "Adding the finalizer " + string(finalizer.VolumeProtection)
	removesProtection = "Removing the finalizer " + string(finalizer.VolumeProtection)
)

// writeOf returns the write of the action.
func writeOf(action binding.VolumeAction) string {
	switch action {
	case binding.SetPhaseAvailable:
		return "Writing the phase Available"
	case binding.SetPhaseBound:
		return "Writing the phase Bound"
	case binding.SetPhaseReleased:
		return "Writing the phase Released"
	case binding.ClearClaimRef:
		return "Removing the reference to the claim that is gone"
	default: // reads
		return "Reading the claim"
	}
}

// reportMismatch sends an event about both objects.
func (c *Controller) reportMismatch(o observation) {
	c.Reporter.Report(o.volume, controller.WarningEvent(volumeMismatch,
		fmt.Sprintf("Cannot bind PersistentVolume to requested PersistentVolumeClaim %q due to incompatible volumeMode",
			o.claim.Name)))
	c.Reporter.Report(o.claim, controller.WarningEvent(volumeMismatch,
		fmt.Sprintf("Cannot bind PersistentVolume %q to requested PersistentVolumeClaim due to incompatible volumeMode",
			o.volume.Name)))
}

// reportNeverBound sends an event about the claim, which gets another volume than the
// one provisioned for it.
func (c *Controller) reportNeverBound(o observation, err error) {
	if err != nil || o.claim == nil || !storage.NeverBound(o.claim) || o.claim.UID != o.volume.Spec.ClaimRef.UID {
		return
	}
	c.Reporter.Report(o.claim, controller.WarningEvent(string(binding.NeverBoundVolume),
		fmt.Sprintf("Volume %q was deleted before the claim was bound to it; the volume is reclaimed, and the claim gets another volume", o.volume.Name)))
}

// reportScrubbed sends an event about a volume that awaits its recycler pod.
func (c *Controller) reportScrubbed(volume *v1.PersistentVolume, reason binding.VolumeReason) {
	if pod := c.InTree.ScrubbingPod(volume); pod != "" && reason == binding.RecyclerPodRuns {
		c.Reporter.Report(volume, controller.NormalEvent(recyclerPod,
			fmt.Sprintf("Recycler pod: pod %s may still remove data; no claim gets the volume until the pod has ended", pod)))
	}
}
