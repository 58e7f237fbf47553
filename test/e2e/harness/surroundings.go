package harness

import (
	"context"
	"fmt"
	"strings"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/test/sandbox"
)

// DeadNode begins the names of nodes whose kubelets are dead, in a setup with Teardown and without machines.
const DeadNode = "dead"

// startSurroundings starts what a setup with Machines or Teardown adds.
func (c *Cluster) startSurroundings(ctx context.Context, how Setup) error {
	if how.Machines > 0 {
		if err := c.startCloud(ctx, how); err != nil {
			return err
		}
	}
	if !how.Teardown {
		return nil
	}
	if how.Machines == 0 {
		if _, err := c.sandbox.StartTeardownLoops(ctx, how.UpstreamLoops); err != nil {
			return err
		}
		c.startKubelets()
	}
	return c.startServices(ctx)
}

// startServices starts load balancers and snapshots. Volumes of the driver need no attachment.
func (c *Cluster) startServices(ctx context.Context) (err error) {
	if c.Balancers, err = c.sandbox.StartCloudController(ctx); err != nil {
		return err
	}
	_, err = c.Client.StorageV1().CSIDrivers().Create(ctx, &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: c.Driver.DriverName},
		Spec:       storagev1.CSIDriverSpec{AttachRequired: new(bool)},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create CSI driver: %w", err)
	}
	return c.sandbox.StartSnapshots(ctx, c.Driver)
}

// startKubelets ends pods until the cluster stops.
func (c *Cluster) startKubelets() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- sandbox.EndPods(ctx, c.Client, func(node string) bool { return strings.HasPrefix(node, DeadNode) })
	}()
	c.kubelets = func() error {
		cancel()
		return <-ended
	}
}
