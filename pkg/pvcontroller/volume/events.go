package volume

import (
	"fmt"

	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// volumeMismatch is an event reason of kube-controller-manager.
const volumeMismatch = "VolumeMismatch"

// reportMismatch sends an event about both objects.
func (c *Controller) reportMismatch(o observation) {
	c.Reporter.Report(o.volume, controller.WarningEvent(volumeMismatch, fmt.Sprintf("Cannot bind PersistentVolume to requested PersistentVolumeClaim %q due to incompatible volumeMode", o.claim.Name)))
	c.Reporter.Report(o.claim, controller.WarningEvent(volumeMismatch, fmt.Sprintf("Cannot bind PersistentVolume %q to requested PersistentVolumeClaim due to incompatible volumeMode", o.volume.Name)))
}

// reportNeverBound sends an event about the claim, which gets another volume than the
// one provisioned for it.
func (c *Controller) reportNeverBound(o observation, err error) {
	if err != nil || o.claim == nil || !storage.NeverBound(o.claim) || o.claim.UID != o.volume.Spec.ClaimRef.UID {
		return
	}
	c.Reporter.Report(o.claim, controller.WarningEvent(string(binding.NeverBoundVolume), fmt.Sprintf("Volume %q was deleted before the claim was bound to it; the volume is reclaimed, and the claim gets another volume", o.volume.Name)))
}
