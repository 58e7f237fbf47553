package provisioner

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// Event reasons of kube-controller-manager. TestInTreeProvisioningEventsHaveUpstreamKeyWords
// lists the key words of the messages.
const (
	provisioningFailed    = "ProvisioningFailed"
	provisioningSucceeded = "ProvisioningSucceeded"
)

// reportFailure sends the event about the failure and returns the error. A stale cache
// is no failure.
func (c *Controller) reportFailure(claim *v1.PersistentVolumeClaim, err error) error {
	if !errors.Is(err, controller.ErrStaleCache) {
		c.Operations.Failed(claim.UID)
		c.Reporter.ReportFailure(claim, controller.WarningEvent(provisioningFailed,
			fmt.Sprintf("Failed to provision volume with StorageClass %q: %v", storage.ClaimClass(claim), err)))
	}
	return err
}

func (c *Controller) reportSuccess(ctx context.Context, o observation) {
	plugin := o.volume.Annotations[storage.AnnDynamicallyProvisioned]
	klog.FromContext(ctx).V(2).Info("Volume provisioned", "volume", o.volume.Name, "plugin", plugin)
	c.Reporter.Report(o.claim, controller.NormalEvent(provisioningSucceeded,
		fmt.Sprintf("Successfully provisioned volume %s using %s", o.volume.Name, plugin)))
}
