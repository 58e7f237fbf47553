package claim

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// Event reasons of kube-controller-manager, which scripts and alerts match. words_test.go
// lists the key words of the messages.
const (
	failedBinding        = "FailedBinding"
	volumeMismatch       = "VolumeMismatch"
	claimLost            = "ClaimLost"
	claimMisbound        = "ClaimMisbound"
	waitForFirstConsumer = "WaitForFirstConsumer"
	waitForPodScheduled  = "WaitForPodScheduled"
	provisioningFailed   = "ProvisioningFailed"
	externalProvisioning = "ExternalProvisioning"
)

// eventFor returns the event for the reason why a claim waits, false for a reason without
// event.
func (c *Controller) eventFor(o *observation, reason binding.Reason) (controller.Event, bool) {
	class := storage.ClaimClass(o.claim)
	switch reason {
	case binding.VolumeMissing:
		return controller.NormalEvent(failedBinding,
			fmt.Sprintf("The requested volume %q does not exist; the claim waits until a PersistentVolume of this name is created", o.claim.Spec.VolumeName)), true
	case binding.VolumeMismatched:
		return controller.WarningEvent(volumeMismatch, fmt.Sprintf("Cannot bind to requested volume %q: %s",
			o.claim.Spec.VolumeName, binding.Mismatch(o.volume, o.claim))), true
	case binding.VolumeBoundToOther:
		return controller.WarningEvent(failedBinding,
			fmt.Sprintf("The requested volume %q is already bound to a different claim: it belongs to %s",
				o.claim.Spec.VolumeName, otherClaim(o))), true
	case binding.VolumeScrubbed:
		return controller.NormalEvent(failedBinding,
			fmt.Sprintf("Volume %q is not bound until %s has ended, which may still remove data", o.volume.Name, c.scrubber(o.volume))), true
	case binding.ReferenceLost:
		return controller.WarningEvent(claimLost,
			"The bound claim has lost reference to PersistentVolume: spec.volumeName is empty. Data on the volume is lost to the claim until spec.volumeName is restored"), true
	case binding.VolumeLost:
		return controller.WarningEvent(claimLost,
			fmt.Sprintf("The bound claim has lost its PersistentVolume %q. Data on the volume is lost to the claim unless the PersistentVolume is restored", o.claim.Spec.VolumeName)), true
	case binding.Misbound:
		return controller.WarningEvent(claimMisbound,
			fmt.Sprintf("Two claims are bound to the same volume %q, this one is bound incorrectly: the volume belongs to %s", o.claim.Spec.VolumeName, otherClaim(o))), true
	case binding.NothingFits:
		return controller.NormalEvent(failedBinding,
			"There are no persistent volumes available for this claim and no storage class is set"), true
	case binding.AwaitsConsumer:
		return c.consumerEvent(o.claim), true
	case binding.ClassMissing:
		return controller.WarningEvent(provisioningFailed, classNotFound(class)), true
	case binding.ProvisionerMissing:
		return controller.WarningEvent(provisioningFailed, c.pluginNotFound(class)), true
	case binding.AwaitsProvisioner:
		return controller.NormalEvent(externalProvisioning,
			fmt.Sprintf("Waiting for a volume to be created by the external provisioner '%s' or manually by the system administrator; if this takes long, verify that the provisioner is running and correctly registered", o.provisioner)), true
	case binding.ClaimDeleting, binding.IsBound, binding.Binding, binding.AwaitsPlugin, binding.PluginMigrated,
		binding.DefaultClass, binding.ProvisioningOff:
	}
	return controller.Event{}, false
}

// scrubber names what may be removing data of the volume.
func (c *Controller) scrubber(volume *v1.PersistentVolume) string {
	if pod := c.Observer.Scrubbing.ScrubbingPod(volume); pod != "" {
		return "recycler pod " + pod
	}
	return "the deletion for its former claim"
}

// otherClaim names the claim of the volume. Who may read the events of one namespace need not know the claims of another.
func otherClaim(o *observation) string {
	namespace, name := "", ""
	if ref := o.volume.Spec.ClaimRef; ref != nil {
		namespace, name = ref.Namespace, ref.Name
	} else if o.owner != nil {
		namespace, name = o.owner.Namespace, o.owner.Name
	}
	if namespace == o.claim.Namespace {
		return "claim " + name
	}
	return "a claim in another namespace"
}

// consumerEvent distinguishes a claim without pods from a claim whose pods are not
// scheduled.
func (c *Controller) consumerEvent(claim *v1.PersistentVolumeClaim) controller.Event {
	var pods []string
	for _, pod := range c.Caches.PodsOf(controller.Key(claim)) {
		if pod.Spec.NodeName == "" && pod.Status.Phase != v1.PodSucceeded && pod.Status.Phase != v1.PodFailed {
			pods = append(pods, pod.Name)
		}
	}
	slices.Sort(pods)
	switch len(pods) {
	case 0:
		return controller.NormalEvent(waitForFirstConsumer,
			"The claim is waiting for first consumer to be created before binding: no pod uses the claim yet")
	case 1:
		return controller.NormalEvent(waitForPodScheduled, fmt.Sprintf("The claim is waiting for pod %s to be scheduled",
			pods[0]))
	}
	return controller.NormalEvent(waitForPodScheduled, fmt.Sprintf("The claim is waiting for pods %s to be scheduled",
		strings.Join(pods, ",")))
}

func classNotFound(name string) string {
	return fmt.Sprintf("storageclass.storage.k8s.io %q not found", name)
}

// pluginNotFound names the provisioner of the class, which is neither an in-tree plugin
// nor an external provisioner.
func (c *Controller) pluginNotFound(name string) string {
	provisioner := ""
	if class := c.Caches.Class(name); class != nil {
		provisioner = class.Provisioner
	}
	return fmt.Sprintf("no volume plugin matched name: %s, which is the provisioner of storage class %q; the claim waits for a volume that satisfies it", provisioner, name)
}
