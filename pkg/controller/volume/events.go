package volume

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/reclaim"
)

// Event reasons, as in kube-controller-manager: scripts and alerts match them.
const (
	volumeMismatch             = "VolumeMismatch"
	volumeFailedDelete         = "VolumeFailedDelete"
	volumeFailedRecycle        = "VolumeFailedRecycle"
	volumeUnknownReclaimPolicy = "VolumeUnknownReclaimPolicy"
)

// failure says why a volume that should be reclaimed is Failed.
func failure(volume *v1.PersistentVolume, reason reclaim.Reason) controller.Event {
	policy := volume.Spec.PersistentVolumeReclaimPolicy
	switch {
	case reason == reclaim.UnknownPolicy:
		return controller.Warn(volumeUnknownReclaimPolicy, fmt.Sprintf("The reclaim policy %q is not known; the volume is left as it is", policy))
	case policy == v1.PersistentVolumeReclaimRecycle:
		return controller.Warn(volumeFailedRecycle, "No plugin here can recycle the volume; its data is left as it is")
	}
	return controller.Warn(volumeFailedDelete, "No plugin here can delete the volume; its data is left as it is")
}

// reportMismatch tells both objects' users.
func (c *Controller) reportMismatch(o observation) {
	c.Reporter.Report(o.volume, controller.Warn(volumeMismatch, fmt.Sprintf("Cannot bind to claim %q: volumeMode differs", o.claim.Name)))
	c.Reporter.Report(o.claim, controller.Warn(volumeMismatch, fmt.Sprintf("Cannot bind to volume %q: volumeMode differs", o.volume.Name)))
}

// reportNeverBound tells the claim's user why he gets another volume than the one
// that was made for the claim.
func (c *Controller) reportNeverBound(o observation, err error) {
	if err != nil || o.claim == nil || !binding.NeverBound(o.claim) || o.claim.UID != o.volume.Spec.ClaimRef.UID {
		return
	}
	c.Reporter.Report(o.claim, controller.Warn(string(binding.NeverBoundVolume), fmt.Sprintf("Volume %q was deleted before the claim was bound to it; it is reclaimed, and another one is made", o.volume.Name)))
}
