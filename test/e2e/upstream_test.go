package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/internal/sandbox"
)

// startUpstreamLoops starts the three loops of the real kube-controller-manager.
func (c *cluster) startUpstreamLoops(ctx context.Context, controller sandbox.Controller) (*sandbox.Process, error) {
	if err := c.grantUpstream(ctx); err != nil {
		return nil, err
	}
	return c.plane.StartUpstreamLoops(ctx, sandbox.Controller{Name: controller.Name})
}

// startUpstreamSidecar starts the real csi-provisioner.
func (c *cluster) startUpstreamSidecar(ctx context.Context, driver *sandbox.Driver, _ sandbox.Controller) (*sandbox.Process, error) {
	if err := c.grantUpstream(ctx); err != nil {
		return nil, err
	}
	return c.plane.StartUpstreamProvisioner(ctx, driver, sandbox.Controller{})
}

// grantUpstream gives upstream's programs the rights that its own manifests grant.
func (c *cluster) grantUpstream(ctx context.Context) error {
	if err := sandbox.Apply(ctx, c.plane.RESTConfig(), os.DirFS(filepath.Join("..", "upstream", "rbac"))); err != nil {
		return fmt.Errorf("grant upstream's rights: %w", err)
	}
	return nil
}

func TestUpstreamsSidecarBesideOurControllerReclaimsInBothOrders(t *testing.T) {
	reclaimBesideUpstream(t, setup{honor: true, upstreamSidecar: true})
}

func TestOurProvisionerBesideUpstreamsLoopsReclaimsInBothOrders(t *testing.T) {
	reclaimBesideUpstream(t, setup{honor: true, upstreamLoops: true})
}

// reclaimBesideUpstream deletes dynamic and static volumes in both orders. How
// often the driver is asked is upstream's affair where its sidecar runs.
func reclaimBesideUpstream(t *testing.T, how setup) {
	t.Parallel()
	for _, static := range []bool{false, true} {
		for _, o := range []order{claimOnly, volumeThenClaim} {
			j := journey{static: static, policy: v1.PersistentVolumeReclaimDelete, order: o}
			t.Run(j.String(), func(t *testing.T) {
				t.Parallel()
				s := enter(t, shared(t, how))
				volume := s.depart(j, true)
				if s.stored(handle(volume)) {
					t.Errorf("volume %s leaked: the storage system still has %s", volume.Name, handle(volume))
				}
				if calls := s.calls("DeleteVolume", handle(volume)); calls != 1 && !how.upstreamSidecar {
					t.Errorf("DeleteVolume was called %d times for %s, want once", calls, handle(volume))
				}
			})
		}
	}
}
