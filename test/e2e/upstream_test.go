package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/internal/sandbox"
)

// The users that upstream's programs run as; their rights are those that
// upstream's own manifests grant.
var (
	loopsUser   = sandbox.User("system:kube-controller-manager")
	sidecarUser = sandbox.ServiceAccount(deploy.Namespace, "csi-provisioner")
)

// startUpstreamLoops starts the three loops of the real kube-controller-manager.
func (c *cluster) startUpstreamLoops(ctx context.Context, _ sandbox.Controller) (*sandbox.Process, error) {
	return c.startUpstream(ctx, "kube-controller-manager", loopsUser,
		"--controllers=persistentvolume-binder-controller,persistentvolume-protection-controller,persistentvolumeclaim-protection-controller",
		"--leader-elect=false", "--secure-port=0", "--use-service-account-credentials=false")
}

// startUpstreamSidecar starts the real csi-provisioner.
func (c *cluster) startUpstreamSidecar(ctx context.Context, driver *sandbox.Driver, _ sandbox.Controller) (*sandbox.Process, error) {
	return c.startUpstream(ctx, "csi-provisioner", sidecarUser, "--csi-address="+driver.Socket)
}

func (c *cluster) startUpstream(ctx context.Context, program string, user sandbox.Identity, args ...string) (*sandbox.Process, error) {
	if err := sandbox.Apply(ctx, c.plane.RESTConfig(), os.DirFS(filepath.Join("..", "upstream", "rbac"))); err != nil {
		return nil, fmt.Errorf("grant upstream's rights: %w", err)
	}
	kubeconfig, err := c.plane.Kubeconfig(ctx, user)
	if err != nil {
		return nil, err
	}
	path, err := sandbox.Binaries{Dir: filepath.Join(binaries().Dir, "upstream")}.Path(program)
	if err != nil {
		return nil, err
	}
	return sandbox.Start(ctx, sandbox.Program{
		Name:    program,
		Path:    path,
		Args:    append(args, "--kubeconfig="+kubeconfig, "--kube-api-qps=5000", "--kube-api-burst=5000"),
		LogFile: filepath.Join(c.dir, program+".log"),
	})
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
