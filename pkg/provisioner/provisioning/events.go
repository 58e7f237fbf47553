package provisioning

import (
	"fmt"
	"time"

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

// reportFailure returns the error, so that the claim is retried.
func (c *Controller) reportFailure(o *observation, err error) error {
	c.Reporter.ReportFailure(o.claim, controller.WarningEvent(provisioningFailed, err.Error()))
	return err
}

// userError returns the text of the event for a failed call, or for a request that cannot
// be built.
func (c *Controller) userError(o *observation, err error, infeasible bool) error {
	if infeasible {
		return fmt.Errorf("failed to provision volume with StorageClass %q: infeasible error, retries will be delayed "+
			"(not retried for %s unless class, node or annotations of the claim change): %w",
			storage.ClaimClass(o.claim), c.Backoff.Max, err)
	}
	return fmt.Errorf("failed to provision volume with StorageClass %q: %w", storage.ClaimClass(o.claim), err)
}

// reportLeftAlone reports a created volume that is neither recorded nor deleted.
func (c *Controller) reportLeftAlone(o *observation, reason string) {
	r := o.record
	if r.disk.volume == nil || r.disk.shown == "" {
		return
	}
	c.Reporter.Report(o.claim, controller.WarningEvent(provisioningCleanupFailed, fmt.Sprintf(
		"The driver returned the volume handle %q for the claim, but %s; "+
			"the volume is left alone: delete it in the storage system if nobody needs it", r.disk.shown, reason)))
}

// volumeNamed is why a created volume is left alone.
const volumeNamed = "a PersistentVolume or a claim names its volume already"

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

// secondsSince returns the seconds since the start, for the metrics.
func secondsSince(start time.Time) float64 {
	return time.Since(start).Seconds()
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
