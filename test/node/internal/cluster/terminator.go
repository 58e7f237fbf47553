package cluster

import (
	"context"
	"fmt"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// StartNodeTerminator applies the manifests of node-terminator, and starts the program, which calls the provider behind
// the socket.
func (c *Cluster) StartNodeTerminator(ctx context.Context, socket string) error {
	namespace, err := deploy.Manifests.ReadFile("namespace.yaml")
	if err != nil {
		return fmt.Errorf("read manifests: %w", err)
	}
	config := c.running.Plane.RESTConfig()
	if err := sandbox.ApplyYAML(ctx, config, namespace); err != nil {
		return err
	}
	if err := sandbox.Apply(ctx, config, deploy.NodeTerminator); err != nil {
		return err
	}
	process, err := c.running.Plane.StartNodeTerminator(ctx, sandbox.Controller{
		Args: []string{"--leader-elect=false", "--v=4", "--instances=socket", "--instances-socket=" + socket}})
	if err == nil {
		c.running.Add(process)
	}
	return err
}
