package harness

import (
	"context"
	"fmt"
	"os"

	"github.com/exeunt-io/exeunt/test/sandbox"
)

// startUpstreamLoops starts the three loops of the real kube-controller-manager.
func (c *Cluster) startUpstreamLoops(ctx context.Context, controller sandbox.Controller) (*sandbox.Process, error) {
	if err := c.GrantUpstream(ctx); err != nil {
		return nil, err
	}
	return c.Plane.StartUpstreamLoops(ctx, sandbox.Controller{Name: controller.Name})
}

// startUpstreamSidecar starts the real csi-provisioner.
func (c *Cluster) startUpstreamSidecar(ctx context.Context, driver *sandbox.Driver, _ sandbox.Controller) (*sandbox.Process, error) {
	if err := c.GrantUpstream(ctx); err != nil {
		return nil, err
	}
	return c.Plane.StartUpstreamProvisioner(ctx, driver, sandbox.Controller{})
}

// GrantUpstream gives upstream's programs the rights that its own manifests grant.
func (c *Cluster) GrantUpstream(ctx context.Context) error {
	if err := sandbox.Apply(ctx, c.Plane.RESTConfig(), os.DirFS(InCheckout("test", "upstream", "rbac"))); err != nil {
		return fmt.Errorf("grant upstream's rights: %w", err)
	}
	return nil
}
