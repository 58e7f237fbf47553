package sandbox

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/exeunt-io/exeunt/deploy"
)

// The service accounts of the controllers. The manifests grant their rights.
var (
	PVControllerAccount = ServiceAccount(deploy.Namespace, deploy.PVController)
	ProvisionerAccount  = ServiceAccount(deploy.Namespace, deploy.Provisioner)
)

// Identity is a user for whom the control plane can issue a kubeconfig.
type Identity struct {
	// name of the user in RBAC.
	name string
	// flags identify the user to the control plane program.
	flags []string
}

// User returns the identity of the named user in groups.
func User(name string, groups ...string) Identity {
	flags := []string{"--user=" + name}
	for _, group := range groups {
		flags = append(flags, "--group="+group)
	}
	return Identity{name: name, flags: flags}
}

// ServiceAccount returns the identity of a service account, which need not
// exist as an object.
func ServiceAccount(namespace, name string) Identity {
	return Identity{
		name:  "system:serviceaccount:" + namespace + ":" + name,
		flags: []string{"--service-account=" + namespace + "/" + name},
	}
}

// Name returns the name of the user in RBAC and in the audit log.
func (i Identity) Name() string { return i.name }

// Kubeconfig writes a kubeconfig for identity and returns its file.
func (c *ControlPlane) Kubeconfig(ctx context.Context, identity Identity) (string, error) {
	file := filepath.Join(c.config.Dir, fileName(identity.name)+".kubeconfig")
	args := append([]string{"kubeconfig", "--data-dir=" + c.dataDir(), "--out=" + file}, identity.flags...)
	if output, err := exec.CommandContext(ctx, c.program, args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("write kubeconfig of %s: %w: %s", identity.name, err, strings.TrimSpace(string(output)))
	}
	return file, nil
}

// fileName returns text with unsuitable characters replaced.
func fileName(text string) string {
	return strings.NewReplacer(":", "-", "/", "-").Replace(text)
}

// Upstream's programs.
const (
	upstreamLoops   = "kube-controller-manager"
	upstreamSidecar = "csi-provisioner"
)

// The users of upstream's programs. Their rights are in test/upstream/rbac.
var (
	upstreamLoopsUser   = User("system:kube-controller-manager")
	UpstreamSidecarUser = ServiceAccount(deploy.Namespace, "csi-provisioner")
)

// StartUpstreamLoops starts the three loops of the real kube-controller-manager that the
// pv-controller replaces. Their gate is locked, so HonorReclaimPolicy has no effect.
func (c *ControlPlane) StartUpstreamLoops(ctx context.Context, controller Controller) (*Process, error) {
	return c.startUpstream(ctx, upstreamLoops, upstreamLoopsUser, controller, []string{
		"--controllers=persistentvolume-binder-controller,persistentvolume-protection-controller,persistentvolumeclaim-protection-controller",
		"--leader-elect=false", "--secure-port=0", "--use-service-account-credentials=false",
	})
}

// StartUpstreamProvisioner starts the real csi-provisioner for the volumes of driver.
func (c *ControlPlane) StartUpstreamProvisioner(ctx context.Context, driver *Driver, controller Controller) (*Process, error) {
	return c.startUpstream(ctx, upstreamSidecar, UpstreamSidecarUser, controller, []string{"--csi-address=" + driver.Socket})
}

// startUpstream starts a program of bin/upstream without a client rate limit.
func (c *ControlPlane) startUpstream(ctx context.Context, program string, user Identity, controller Controller, args []string) (*Process, error) {
	path, err := c.config.Binaries.UpstreamPath(program)
	if err != nil {
		return nil, err
	}
	if controller.Kubeconfig == "" {
		if controller.Kubeconfig, err = c.Kubeconfig(ctx, user); err != nil {
			return nil, err
		}
	}
	args = append(args, "--kubeconfig="+controller.Kubeconfig, "--kube-api-qps=5000", "--kube-api-burst=5000")
	name := cmp.Or(controller.Name, program)
	return Start(ctx, Program{
		Name:    name,
		Path:    path,
		Args:    append(args, controller.Args...),
		Env:     controller.Env,
		LogFile: filepath.Join(c.config.Dir, name+".log"),
	})
}
