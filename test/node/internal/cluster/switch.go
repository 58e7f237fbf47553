package cluster

import (
	"context"
	"path/filepath"

	"github.com/exeunt-io/exeunt/deploy"
)

// SwitchTo replaces the programs of one side by those of the other, Ours or Upstream, as an
// administrator does who tries ours or goes back, and waits until all pods are new.
func (c *Cluster) SwitchTo(ctx context.Context, side Side) error {
	if side == Upstream {
		if err := c.kubectl(ctx, "delete", "-n", deploy.Namespace, "deployment/"+deploy.PVController, "--cascade=foreground"); err != nil {
			return err
		}
	}
	if err := c.loops.Kill(); err != nil {
		return err
	}
	c.config.Side = side
	if err := c.startLoops(ctx); err != nil {
		return err
	}
	steps := [][]string{
		{"apply", "-k", filepath.Join(c.config.Dir, "site", string(side))},
		{"rollout", "status", "-n", Namespace, "deployment/directory"},
	}
	if side == Ours {
		steps = append([][]string{{"apply", "-f", filepath.Join(c.config.Source, "deploy", "namespace.yaml")}}, steps...)
		steps = append(steps, []string{"rollout", "status", "-n", deploy.Namespace, "deployment/" + deploy.PVController})
	}
	for _, args := range steps {
		if err := c.kubectl(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}
