package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/exeunt-io/exeunt/test/sandbox"
	"github.com/exeunt-io/exeunt/test/upstream/rbac"
)

// Pair is who binds, provisions and reclaims volumes in a cluster.
type Pair string

const (
	// Ours are pv-controller and provisioner.
	Ours Pair = "ours"
	// Upstream are three loops of kube-controller-manager, and csi-provisioner.
	Upstream Pair = "upstream"
)

// StartPair starts a mock driver with no volumes and with scripted faults, and a pair.
func (c *Cluster) StartPair(ctx context.Context, pair Pair, faults string) error {
	names := map[Pair]string{Ours: "pv-controller and provisioner",
		Upstream: "kube-controller-manager and csi-provisioner"}
	c.pair = pair
	return c.config.Progress.Do(ctx, "starting csimock, "+names[pair], func(ctx context.Context) error {
		if err := c.startDriver(ctx, func(dir string) ([]string, error) { return writeFaults(dir, faults) }); err != nil {
			return err
		}
		if pair == Upstream {
			if err := sandbox.Apply(ctx, c.sandbox.Plane.RESTConfig(), rbac.Manifests); err != nil {
				return fmt.Errorf("grant upstream's rights: %w", err)
			}
		}
		if err := c.startLoops(ctx, sandbox.Controller{HonorReclaimPolicy: true}); err != nil {
			return err
		}
		return c.StartProvisioner(ctx)
	})
}

// startLoops starts the program of the pair that binds volumes.
func (c *Cluster) startLoops(ctx context.Context, controller sandbox.Controller) error {
	process, err := c.sandbox.StartLoops(ctx, c.pair == Upstream, controller)
	if err == nil {
		c.controllers = append(c.controllers, process)
	}
	return err
}

// StartProvisioner starts the provisioner of the pair, also after KillProvisioner. Its gate is on,
// which upstream has for ever.
func (c *Cluster) StartProvisioner(ctx context.Context) error {
	return c.startProvisioner(ctx, sandbox.Controller{HonorReclaimPolicy: true})
}

func (c *Cluster) startProvisioner(ctx context.Context, controller sandbox.Controller) error {
	process, err := c.sandbox.StartProvisioner(ctx, c.pair == Upstream, c.driver, controller)
	if err == nil {
		c.controllers = append(c.controllers, process)
	}
	return err
}

// KillProvisioner ends the provisioner, which was started last, as a crash does.
func (c *Cluster) KillProvisioner() error {
	if len(c.controllers) < 2 {
		return errors.New("kill the provisioner: it does not run")
	}
	last := len(c.controllers) - 1
	process := c.controllers[last]
	c.controllers = c.controllers[:last]
	return c.sandbox.Kill(process)
}

// StoredVolumes returns the handles of the volumes in the storage system.
func (c *Cluster) StoredVolumes(ctx context.Context) ([]string, error) {
	return sandbox.StoredVolumes(ctx, c.driver.Socket)
}

// writeFaults writes the faults of a driver and returns its flags.
func writeFaults(dir, faults string) ([]string, error) {
	if faults == "" {
		return nil, nil
	}
	file := filepath.Join(dir, "faults.yaml")
	if err := os.WriteFile(file, []byte(faults), 0o600); err != nil {
		return nil, fmt.Errorf("write faults of the driver: %w", err)
	}
	return []string{"--faults=" + file}, nil
}
