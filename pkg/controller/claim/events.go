package claim

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/controller"
)

// Event reasons, as in kube-controller-manager: scripts and alerts match them.
const (
	failedBinding        = "FailedBinding"
	volumeMismatch       = "VolumeMismatch"
	claimLost            = "ClaimLost"
	claimMisbound        = "ClaimMisbound"
	waitForFirstConsumer = "WaitForFirstConsumer"
	waitForPodScheduled  = "WaitForPodScheduled"
	provisioningFailed   = "ProvisioningFailed"

	provisioningSucceeded = "ProvisioningSucceeded"

	externalProvisioning = "ExternalProvisioning"
)

// eventFor returns what the user reads of a claim that waits, false if there is
// nothing to say.
func (c *Controller) eventFor(o *observation, reason binding.Reason) (controller.Event, bool) {
	class := binding.ClaimClass(o.claim)
	switch reason {
	case binding.VolumeUnfit:
		return controller.Warn(volumeMismatch, fmt.Sprintf("Cannot bind to the requested volume %q: %s", o.claim.Spec.VolumeName, binding.Mismatch(o.volume, o.claim))), true
	case binding.VolumeTaken:
		return controller.Warn(failedBinding, fmt.Sprintf("The requested volume %q belongs to claim %s", o.claim.Spec.VolumeName, controller.ClaimKey(o.volume))), true
	case binding.ReferenceLost:
		return controller.Warn(claimLost, "The claim was bound and no longer names its volume; the data on it is out of reach"), true
	case binding.VolumeLost:
		return controller.Warn(claimLost, fmt.Sprintf("The claim is bound to volume %q, which no longer exists", o.claim.Spec.VolumeName)), true
	case binding.Misbound:
		return controller.Warn(claimMisbound, fmt.Sprintf("The claim is bound to volume %q, which belongs to claim %s", o.claim.Spec.VolumeName, controller.ClaimKey(o.volume))), true
	case binding.NothingFits:
		return controller.Note(failedBinding, "No volume satisfies the claim, and no storage class is set that could provision one"), true
	case binding.AwaitsConsumer:
		return c.consumerEvent(o.claim), true
	case binding.ClassMissing:
		return controller.Warn(provisioningFailed, fmt.Sprintf("The storage class %q does not exist", class)), true
	case binding.ProvisionerMissing:
		return controller.Warn(provisioningFailed, fmt.Sprintf("No volume satisfies the claim, and the provisioner of its storage class %q cannot make one here", class)), true
	case binding.AwaitsProvisioner:
		return controller.Note(externalProvisioning, fmt.Sprintf("Waiting for the external provisioner %q to create a volume, or for an administrator to provide one; if this takes long, see whether the provisioner runs and knows its driver", c.provisionerOf(o.claim))), true
	case binding.ClaimDeleting, binding.IsBound, binding.FromOldVersion, binding.Binding, binding.AwaitsPlugin, binding.PluginMigrated, binding.VolumeMissing, binding.DefaultClass, binding.ProvisioningOff:
	}
	return controller.Event{}, false
}

// consumerEvent tells a claim that nobody uses yet from one whose pods are not
// scheduled.
func (c *Controller) consumerEvent(claim *v1.PersistentVolumeClaim) controller.Event {
	var pods []string
	for _, pod := range c.Caches.PodsOf(controller.Key(claim)) {
		if pod.Spec.NodeName == "" && pod.Status.Phase != v1.PodSucceeded && pod.Status.Phase != v1.PodFailed {
			pods = append(pods, pod.Name)
		}
	}
	if len(pods) == 0 {
		return controller.Note(waitForFirstConsumer, "Waiting for the first pod that uses the claim")
	}
	slices.Sort(pods)
	return controller.Note(waitForPodScheduled, "Waiting for the scheduling of "+strings.Join(pods, ", "))
}
