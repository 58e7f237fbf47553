package sandbox

import (
	"cmp"
	"context"
	"path/filepath"

	"github.com/exeunt-io/exeunt/deploy"
)

// Upstream's programs.
const (
	upstreamLoops   = "kube-controller-manager"
	upstreamSidecar = "csi-provisioner"
)

// noQPS and noBurst lift the client rate limit, which our programs do not have.
const noQPS, noBurst = "--kube-api-qps=5000", "--kube-api-burst=5000"

// The users of upstream's programs. Their rights are in test/upstream/rbac.
var (
	upstreamLoopsUser        = User("system:kube-controller-manager")
	UpstreamSidecarUser      = ServiceAccount(deploy.Namespace, "csi-provisioner")
	UpstreamCollectorAccount = ServiceAccount("kube-system", "generic-garbage-collector")
)

// StartUpstreamLoops starts the three loops of the real kube-controller-manager that the
// pv-controller replaces. Their gate is locked, so HonorReclaimPolicy has no effect.
func (c *ControlPlane) StartUpstreamLoops(ctx context.Context, controller Controller) (*Process, error) {
	return c.startUpstream(ctx, upstreamLoops, upstreamLoopsUser, controller, []string{
		"--controllers=persistentvolume-binder-controller,persistentvolume-protection-controller,persistentvolumeclaim-protection-controller",
		"--leader-elect=false", "--secure-port=0", "--use-service-account-credentials=false", noQPS, noBurst,
	})
}

// StartUpstreamProvisioner starts the real csi-provisioner for the volumes of driver.
func (c *ControlPlane) StartUpstreamProvisioner(
	ctx context.Context, driver *Driver, controller Controller,
) (*Process, error) {
	return c.startUpstream(ctx, upstreamSidecar, UpstreamSidecarUser, controller,
		[]string{"--csi-address=" + driver.Socket, noQPS, noBurst})
}

// StartUpstreamCollector starts the garbage collector of the real kube-controller-manager.
func (c *ControlPlane) StartUpstreamCollector(ctx context.Context, controller Controller) (*Process, error) {
	return c.startUpstream(ctx, upstreamLoops, UpstreamCollectorAccount, controller, []string{
		"--controllers=garbage-collector-controller", "--leader-elect=false", "--secure-port=0",
		"--use-service-account-credentials=false", noQPS, noBurst,
	})
}

// StartControllerManager starts the real kube-controller-manager with these controllers, as in a
// cluster: with their service accounts, and a client rate limit.
func (c *ControlPlane) StartControllerManager(
	ctx context.Context, controllers string, controller Controller,
) (*Process, error) {
	keys := filepath.Join(c.dataDir(), "pki")
	return c.startUpstream(ctx, upstreamLoops, upstreamLoopsUser, controller, []string{
		"--controllers=" + controllers, "--leader-elect=false", "--use-service-account-credentials",
		"--root-ca-file=" + filepath.Join(keys, "ca.crt"), "--service-account-private-key-file=" +
			filepath.Join(keys, "service-account.key"),
	})
}

// startUpstream starts a program of bin/upstream.
func (c *ControlPlane) startUpstream(
	ctx context.Context, program string, user Identity, controller Controller, args []string,
) (*Process, error) {
	path, err := c.config.Binaries.UpstreamPath(program)
	if err != nil {
		return nil, err
	}
	if controller.Kubeconfig == "" {
		if controller.Kubeconfig, err = c.Kubeconfig(ctx, user); err != nil {
			return nil, err
		}
	}
	args = append(args, "--kubeconfig="+controller.Kubeconfig)
	name := cmp.Or(controller.Name, program)
	return Start(ctx, Program{
		Name:    name,
		Path:    path,
		Args:    append(args, controller.Args...),
		Env:     controller.Env,
		LogFile: filepath.Join(c.config.Dir, name+".log"),
	})
}
