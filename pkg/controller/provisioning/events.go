package provisioning

import (
	"fmt"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
)

// Event reasons, as in csi-provisioner: scripts and alerts match them.
const (
	provisioning              = "Provisioning"
	provisioningSucceeded     = "ProvisioningSucceeded"
	provisioningFailed        = "ProvisioningFailed"
	provisioningCleanupFailed = "ProvisioningCleanupFailed"
)

// provisioningUnresolved is a reason of ours: upstream forgets such a volume.
const provisioningUnresolved = "ProvisioningUnresolved"

func (c *Controller) reportStart(o *observation) {
	c.Reporter.Report(o.claim, controller.Note(provisioning, fmt.Sprintf("External provisioner is provisioning volume for claim %q", controller.Key(o.claim))))
}

func (c *Controller) reportSuccess(o *observation) {
	c.Reporter.Report(o.claim, controller.Note(provisioningSucceeded, "Successfully provisioned volume "+o.name))
}

// reportFailure returns the error, so that the claim is tried again.
func (c *Controller) reportFailure(o *observation, err error) error {
	c.Reporter.Report(o.claim, controller.Warn(provisioningFailed, err.Error()))
	return err
}

// reportUnresolved names the driver on whose answer the end of the claim waits.
func (c *Controller) reportUnresolved(o *observation, err error) error {
	c.Reporter.Report(o.claim, controller.Warn(provisioningUnresolved, fmt.Sprintf(
		"The driver %s has not told whether it made volume %s, which nobody wants any more: %v. It is asked again and again.%s",
		c.Provisioner.Driver.Name(), o.name, err, c.release(o))))
	return err
}

// reportCleanupFailed tells of a volume that was made for nothing and still exists.
func (c *Controller) reportCleanupFailed(o *observation, err error) error {
	failure := fmt.Errorf("delete volume %s, which was made for nothing: %w", o.name, err)
	c.Reporter.Report(o.claim, controller.Warn(provisioningCleanupFailed, fmt.Sprintf("%v. It is tried again and again.%s", failure, c.release(o))))
	return failure
}

func (c *Controller) reportRecordedElsewhere(o *observation, handle string) {
	c.Reporter.Report(o.claim, controller.Warn(provisioningCleanupFailed, fmt.Sprintf(
		"Volume %q was made for the claim, which does not want it, but a PersistentVolume has been written for it meanwhile; it is left alone", handle)))
}

// release is the way out for an administrator who knows that nothing is left.
func (c *Controller) release(o *observation) string {
	if o.gone {
		return ""
	}
	command := finalizer.ReleaseCommand(o.claim, finalizer.Provisioning)
	if command == "" {
		return ""
	}
	return " If the driver never comes back, this lets go of the claim, and leaves behind whatever volume there is: " + command
}

// count counts a try that has come to an end, as csi-provisioner does.
func (c *Controller) count(o *observation, err error) {
	source := ""
	if o.claim.Spec.DataSource != nil {
		source = o.claim.Spec.DataSource.Kind
	}
	class := c.label(o)
	if err != nil {
		c.Metrics.PersistentVolumeClaimProvisionFailedTotal.WithLabelValues(class, source).Inc()
		return
	}
	c.Metrics.PersistentVolumeClaimProvisionTotal.WithLabelValues(class, source).Inc()
	c.Metrics.PersistentVolumeClaimProvisionDurationSeconds.WithLabelValues(class, source).Observe(since(o.began))
}

// label is the claim's class if there is, or was, such a class: what anybody may write
// into a claim must not become a series of its own.
func (c *Controller) label(o *observation) string {
	name := ptr.Deref(o.claim.Spec.StorageClassName, "")
	if o.plan != nil && o.plan.input.Class != nil && o.plan.input.Class.Name == name {
		return name
	}
	if cached[*storagev1.StorageClass](c.Classes, name) == nil {
		return ""
	}
	return name
}
