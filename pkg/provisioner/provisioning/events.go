package provisioning

import (
	"context"
	"fmt"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// Event reasons of csi-provisioner: scripts and alerts match them. The messages keep
// upstream's key words (words_test.go).
const (
	provisioning              = "Provisioning"
	provisioningSucceeded     = "ProvisioningSucceeded"
	provisioningFailed        = "ProvisioningFailed"
	provisioningCleanupFailed = "ProvisioningCleanupFailed"
)

// Event reasons without a counterpart in csi-provisioner.
const (
	provisioningUnresolved = "ProvisioningUnresolved"
	provisioningUnlogged   = "ProvisioningWithoutJournal"
	volumeVanished         = "VolumeVanished"
)

// Reasons for a call without a journal entry.
const (
	bypassTooLarge  = "TooLarge"
	bypassForbidden = "Forbidden"
)

// reportStart reports a call of the driver once it takes long, unless it is withdrawn.
func (c *Controller) reportStart(o *observation) {
	event := controller.NormalEvent(provisioning, fmt.Sprintf("External provisioner is provisioning volume for claim %q", controller.Key(o.claim)))
	c.Reporter.ReportAfter(o.claim, event, storage.QuietWait)
}

func (c *Controller) reportSuccess(o *observation) {
	c.Reporter.Report(o.claim, controller.NormalEvent(provisioningSucceeded, "Successfully provisioned volume "+o.name))
}

// reportFailure returns the error, so that the claim is retried.
func (c *Controller) reportFailure(o *observation, err error) error {
	c.Reporter.ReportFailure(o.claim, controller.WarningEvent(provisioningFailed, err.Error()))
	return err
}

// reportRefusal reports a refused or undone write of the claim, and returns the error.
func (c *Controller) reportRefusal(o *observation, err error) error {
	if !controller.IsRefusal(err) {
		return err
	}
	c.countPass(o, err)
	return c.reportFailure(o, err)
}

// reportUnresolved reports that the driver has not answered a call for an unwanted volume.
func (c *Controller) reportUnresolved(o *observation, err error) error {
	c.Reporter.Report(o.claim, controller.WarningEvent(provisioningUnresolved, fmt.Sprintf(
		"The driver %s has not answered whether it created volume %s, which no claim wants any more; the request is repeated: %v",
		c.Backend.Name(), o.name, err)))
	return err
}

// reportCleanupFailed reports that an unused volume still exists.
func (c *Controller) reportCleanupFailed(o *observation, err error) error {
	failure := fmt.Errorf("delete unused volume %s: %w", o.name, err)
	c.Reporter.Report(o.claim, controller.WarningEvent(provisioningCleanupFailed, fmt.Sprintf(
		"Error cleaning provisioned volume for claim %s: %v; retried with backoff", controller.Key(o.claim), failure)))
	return failure
}

// reportLeftAlone reports a created volume that is neither recorded nor deleted.
func (c *Controller) reportLeftAlone(o *observation, reason string) {
	r := o.record
	if r.disk.volume == nil || r.disk.shown == "" {
		return
	}
	c.Reporter.Report(o.claim, controller.WarningEvent(provisioningCleanupFailed, fmt.Sprintf(
		"The driver returned the volume handle %q for the claim, but %s; the volume is left alone: delete it in the storage system if nobody needs it", r.disk.shown, reason)))
}

// reportUnanswered reports that another node is selected although a request has no answer. A driver that finds
// the volume by its name returns it for the next node; another one leaves it behind.
func (c *Controller) reportUnanswered(o *observation) {
	c.Reporter.Report(o.claim, controller.WarningEvent(provisioningCleanupFailed, fmt.Sprintf(
		"The driver has not answered whether it created volume %s for node %q, and another node is selected; a volume in the storage of that node would be left alone", o.name, o.record.claim.node)))
}

// reportVanished reports a bound claim whose PersistentVolume no longer exists. The volume
// is read live: the cache may be stale.
func (c *Controller) reportVanished(ctx context.Context, o *observation) error {
	volume, err := controller.ReadLive(ctx, "volume", o.name, c.Client.CoreV1().PersistentVolumes().Get)
	if err != nil || volume != nil {
		return err
	}
	c.Reporter.Report(o.claim, controller.WarningEvent(volumeVanished, fmt.Sprintf(
		"The claim was bound to volume %s, whose PersistentVolume no longer exists; the volume in the storage system may hold data and is left alone", o.name)))
	return nil
}

// reportTooLarge reports a request that is sent without a journal entry.
func (c *Controller) reportTooLarge(o *observation, err error) {
	c.Reporter.ReportAlways(o.claim, controller.WarningEvent(provisioningUnlogged, fmt.Sprintf(
		"Volume %s is created without a journal entry and may be left behind if the provisioner ends during the call: %v", o.name, err)))
}

// countBypass counts a call without a journal entry.
func (c *Controller) countBypass(r claimRecord) {
	switch {
	case c.Bypassed == nil:
	case r.request.bypass != "":
		c.Bypassed(r.request.bypass)
	case c.Journaled && c.Journal != nil:
		c.Bypassed(bypassForbidden)
	}
}

// countPass counts a pass over an unbound claim. As in csi-provisioner, passes over deleted
// claims and failures without a retry count. Unlike there, a pass that finds the
// PersistentVolume already created is not a failure.
func (c *Controller) countPass(o *observation, err error) {
	if err != nil && o.claim.Spec.VolumeName != "" {
		return
	}
	source := ""
	if o.claim.Spec.DataSource != nil {
		source = o.claim.Spec.DataSource.Kind
	}
	class := c.classLabel(o)
	if err != nil {
		c.Metrics.PersistentVolumeClaimProvisionFailedTotal.WithLabelValues(class, source).Inc()
		return
	}
	c.Metrics.PersistentVolumeClaimProvisionTotal.WithLabelValues(class, source).Inc()
	c.Metrics.PersistentVolumeClaimProvisionDurationSeconds.WithLabelValues(class, source).Observe(secondsSince(o.began))
}

// classLabel returns the claim's class for a metric, "" for a class that never existed:
// users must not create series with invented class names.
func (c *Controller) classLabel(o *observation) string {
	name := ptr.Deref(o.claim.Spec.StorageClassName, "")
	if o.plan != nil && o.plan.class == name {
		return name
	}
	if controller.Lookup[*storagev1.StorageClass](c.Classes, name) == nil {
		return ""
	}
	return name
}
