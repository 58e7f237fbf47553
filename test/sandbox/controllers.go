package sandbox

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/exeunt-io/exeunt/deploy"
)

// Controller configures a controller process.
type Controller struct {
	// Name is the name of the log, which differs between replicas. Empty means the name of
	// the program.
	Name string
	// HonorReclaimPolicy is the feature gate HonorPVReclaimPolicy.
	HonorReclaimPolicy bool
	// Kubeconfig of the controller. Empty means its service account.
	Kubeconfig string
	// Env is added to the environment, as KEY=VALUE.
	Env []string
	// Args are further flags, which override the flags of the sandbox.
	Args []string
}

// StartPVController starts the controller that binds and protects volumes. It
// leads without an election, unless Args enable leader election.
func (c *ControlPlane) StartPVController(ctx context.Context, controller Controller) (*Process, error) {
	args := []string{"--leader-elect=false"}
	return c.startController(ctx, pvControllerProgram, PVControllerAccount, controller, args)
}

// StartProvisioner starts the controller that creates and deletes the volumes of driver.
// Its Leases are in the namespace of its service account.
func (c *ControlPlane) StartProvisioner(ctx context.Context, driver *Driver, controller Controller) (*Process, error) {
	args := []string{"--csi-address=" + driver.Socket}
	controller.Env = append([]string{"POD_NAMESPACE=" + deploy.Namespace}, controller.Env...)
	return c.startController(ctx, provisionerProgram, ProvisionerAccount, controller, args)
}

// StartLoops starts pv-controller, or the loops of upstream that it replaces.
func (c *ControlPlane) StartLoops(ctx context.Context, upstream bool, controller Controller) (*Process, error) {
	if upstream {
		return c.StartUpstreamLoops(ctx, controller)
	}
	return c.StartPVController(ctx, controller)
}

// StartSidecar starts the provisioner of the driver, ours or upstream's.
func (c *ControlPlane) StartSidecar(
	ctx context.Context, upstream bool, driver *Driver, controller Controller,
) (*Process, error) {
	if upstream {
		return c.StartUpstreamProvisioner(ctx, driver, controller)
	}
	return c.StartProvisioner(ctx, driver, controller)
}

// StartGarbageCollector starts the collector with leader election. The manifests of the collector are applied.
func (c *ControlPlane) StartGarbageCollector(ctx context.Context, controller Controller) (*Process, error) {
	return c.startOptional(ctx, collectorProgram, GarbageCollectorAccount, controller)
}

// StartNodeTerminator starts node-terminator with leader election. The manifests of node-terminator are applied.
func (c *ControlPlane) StartNodeTerminator(ctx context.Context, controller Controller) (*Process, error) {
	controller.Env = append([]string{"POD_NAMESPACE=" + deploy.Namespace}, controller.Env...)
	return c.startOptional(ctx, terminatorProgram, NodeTerminatorAccount, controller)
}

// StartAliveController starts alive-controller. Its manifests are applied.
func (c *ControlPlane) StartAliveController(ctx context.Context, controller Controller) (*Process, error) {
	return c.startOptional(ctx, aliveProgram, AliveControllerAccount, controller)
}

// startOptional starts a program that has no flags in common with the controllers.
func (c *ControlPlane) startOptional(ctx context.Context, program string, account Identity,
	controller Controller) (*Process, error) {
	path, err := c.config.Binaries.Path(program)
	if err != nil {
		return nil, err
	}
	if controller.Kubeconfig == "" {
		if controller.Kubeconfig, err = c.Kubeconfig(ctx, account); err != nil {
			return nil, err
		}
	}
	name := cmp.Or(controller.Name, program)
	return Start(ctx, Program{
		Name: name, Path: path, Args: append([]string{"--kubeconfig=" + controller.Kubeconfig}, controller.Args...),
		Env: controller.Env, LogFile: filepath.Join(c.config.Dir, name+".log"),
	})
}

// startController starts program with args, the common flags of controllers and the flags
// of the caller.
func (c *ControlPlane) startController(
	ctx context.Context, program string, account Identity, controller Controller, args []string,
) (*Process, error) {
	path, err := c.config.Binaries.Path(program)
	if err != nil {
		return nil, err
	}
	if controller.Kubeconfig == "" {
		if controller.Kubeconfig, err = c.Kubeconfig(ctx, account); err != nil {
			return nil, err
		}
	}
	args = append(args,
		"--kubeconfig="+controller.Kubeconfig,
		"--feature-gates=HonorPVReclaimPolicy="+strconv.FormatBool(controller.HonorReclaimPolicy))
	name := cmp.Or(controller.Name, program)
	return Start(ctx, Program{
		Name:    name,
		Path:    path,
		Args:    append(args, controller.Args...),
		Env:     controller.Env,
		LogFile: filepath.Join(c.config.Dir, name+".log"),
	})
}

// The programs of a sandbox.
const (
	controlPlaneProgram = "controlplane"
	pvControllerProgram = "pv-controller"
	provisionerProgram  = "provisioner"
	collectorProgram    = "garbage-collector"
	terminatorProgram   = "node-terminator"
	aliveProgram        = "alive-controller"
	driverProgram       = "csimock"
)

// Binaries locates the built programs.
type Binaries struct {
	// Dir has the programs. Empty means the directory of the running executable.
	Dir string
}

// Path returns the absolute path of the program called name.
func (b Binaries) Path(name string) (string, error) { return b.find("", name, "make build") }

// UpstreamPath returns the absolute path of upstream's program called name.
func (b Binaries) UpstreamPath(name string) (string, error) {
	return b.find("upstream", name, "make build-upstream")
}

// NodePath returns the absolute path of a program for a cluster with a real node.
func (b Binaries) NodePath(name string) (string, error) { return b.find("node", name, "make node") }

// GracefulPath returns the absolute path of a program for graceful deletion of custom resources.
func (b Binaries) GracefulPath(name string) (string, error) {
	return b.find("", name, "make apiserver")
}

// CheckUpstream returns an error if one of upstream's programs is missing.
func (b Binaries) CheckUpstream() error {
	for _, name := range []string{upstreamLoops, upstreamSidecar} {
		if _, err := b.UpstreamPath(name); err != nil {
			return err
		}
	}
	return nil
}

// CheckBalancersAndSnapshots returns an error if a program is missing that StartBalancersAndSnapshots starts.
func (b Binaries) CheckBalancersAndSnapshots() error {
	for _, name := range []string{snapshotController, snapshotSidecar} {
		if _, err := b.UpstreamPath(name); err != nil {
			return err
		}
	}
	_, err := b.find("", cloudController, "make build-upstream")
	return err
}

// find returns the absolute path of a program in a folder of the directory. The error names
// the command that builds the program.
func (b Binaries) find(folder, name, build string) (string, error) {
	directory, err := b.directory()
	if err != nil {
		return "", fmt.Errorf("find %s: %w", name, err)
	}
	path := filepath.Join(directory, folder, name)
	if info, err := os.Stat(path); err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
		return "", fmt.Errorf("find %s: there is no such program in %s, run `%s` first", name, filepath.Dir(path), build)
	}
	return path, nil
}

// directory returns the absolute path of the directory with the programs.
func (b Binaries) directory() (string, error) {
	if b.Dir != "" {
		return filepath.Abs(b.Dir)
	}
	executable, err := os.Executable()
	if err != nil {
		return "", err
	}
	executable, err = filepath.EvalSymlinks(executable)
	return filepath.Dir(executable), err
}
