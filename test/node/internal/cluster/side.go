package cluster

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/exeunt-io/exeunt/deploy"
)

// Side selects the programs that bind, protect, create and delete volumes.
type Side string

// The sides.
const (
	// Ours are pv-controller and provisioner, installed by kustomizations.
	Ours Side = "ours"
	// Chart are the same programs, installed by the chart.
	Chart Side = "chart"
	// Upstream are all loops of kube-controller-manager, and csi-provisioner.
	Upstream Side = "upstream"
)

// check returns an error for an unknown side.
func (s Side) check() error {
	switch s {
	case Ours, Chart, Upstream:
		return nil
	}
	return fmt.Errorf("unknown side %q, want %s, %s or %s", s, Ours, Chart, Upstream)
}

// Other returns the side that takes over from it, and back: Upstream for ours, Ours for upstream's.
func (s Side) Other() Side {
	if s == Upstream {
		return Ours
	}
	return Upstream
}

// Provisioner returns the program that creates and deletes volumes, as its image names it.
func (s Side) Provisioner() string {
	if s == Upstream {
		return "/csi-provisioner"
	}
	return "/provisioner"
}

// SwitchTo replaces the programs of one side by those of the other, Ours or Upstream, as an
// administrator does who tries ours or goes back, and waits until all pods are new.
func (c *Cluster) SwitchTo(ctx context.Context, side Side) error {
	if side == Upstream {
		if err := c.kubectl(ctx, "delete", "-n", deploy.Namespace, "deployment/"+deploy.PVController,
			"--cascade=foreground"); err != nil {
			return err
		}
	}
	if err := c.running.Kill(c.loops); err != nil {
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
