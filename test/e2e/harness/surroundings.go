package harness

import (
	"context"
	"strings"

	"github.com/exeunt-io/exeunt/test/sandbox"
)

// DeadNode begins the names of nodes whose kubelets are dead, in a setup with Teardown and without machines.
const DeadNode = "dead"

// startSurroundings starts what a setup with Machines or Teardown adds.
func (c *Cluster) startSurroundings(ctx context.Context, how Setup) (err error) {
	if how.Machines > 0 {
		if err := c.startCloud(ctx, how); err != nil {
			return err
		}
	}
	if !how.Teardown {
		return nil
	}
	if how.Machines == 0 {
		if c.loops, err = c.sandbox.StartTeardownLoops(ctx, how.UpstreamLoops); err != nil {
			return err
		}
		c.startKubelets()
	}
	c.Balancers, err = c.sandbox.StartBalancersAndSnapshots(ctx, c.Driver)
	return err
}

// RestartLoops kills the loops of a setup with Teardown, all of kube-controller-manager, and starts them again. They take
// an object from a restored etcd for a stale one, as its version is lower than that in their caches.
func (c *Cluster) RestartLoops(ctx context.Context) (err error) {
	if err := c.sandbox.Kill(c.loops); err != nil {
		return err
	}
	c.loops, err = c.sandbox.StartTeardownLoops(ctx, true)
	return err
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
