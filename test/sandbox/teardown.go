package sandbox

import (
	"context"
	"fmt"
	"strings"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// teardownLoops are the loops of kube-controller-manager that a teardown meets, without those of volumes.
var teardownLoops = strings.Join([]string{
	"statefulset-controller", "replicaset-controller", "deployment-controller", "job-controller",
	"ephemeral-volume-controller", "garbage-collector-controller", "namespace-controller", "serviceaccount-controller",
}, ",")

// StartTeardownLoops starts kube-controller-manager, beside pv-controller with the loops that a teardown meets.
// Upstream's runs all loops, those of volumes included.
func (c *Cluster) StartTeardownLoops(ctx context.Context, upstream bool) (*Process, error) {
	loops := teardownLoops
	if upstream {
		loops = "*"
	}
	return c.startManager(ctx, loops, "--concurrent-statefulset-syncs=20", "--concurrent-gc-syncs=20")
}

// StartBalancersAndSnapshots starts the controllers of load balancers and of the driver's snapshots, and says that its
// volumes need no attachment.
func (c *Cluster) StartBalancersAndSnapshots(ctx context.Context, driver *Driver) (*Balancers, error) {
	balancers, err := c.StartCloudController(ctx)
	if err != nil {
		return nil, err
	}
	_, err = c.Plane.Client().StorageV1().CSIDrivers().Create(ctx, &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: driver.DriverName},
		Spec:       storagev1.CSIDriverSpec{AttachRequired: new(bool)},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create CSI driver: %w", err)
	}
	return balancers, c.StartSnapshots(ctx, driver)
}
