package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/client-go/kubernetes"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/exeunt-io/exeunt/test/node/internal/driver"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

const (
	// NodeName is the name of the node.
	NodeName = "node-1"
	// loopsOff are the loops that pv-controller replaces.
	loopsOff = ",-persistentvolume-binder-controller,-persistentvolume-protection-controller,-persistentvolumeclaim-protection-controller"
	// registry is that of the manifests.
	registry = "registry.invalid/exeunt"
)

// Config configures a cluster.
type Config struct {
	// Source is the root of this repository, Binaries its folder with the programs.
	Source, Binaries string
	// Dir gets data and logs. Sockets are in it, so its path is short.
	Dir  string
	Side Side
}

// Cluster is a control plane with one node.
type Cluster struct {
	// Client is the administrator's client, Kubeconfig the file of the administrator.
	Client     kubernetes.Interface
	Kubeconfig string

	config           Config
	release          string // the version of the manifests and images
	running          *sandbox.Cluster
	loops, scheduler *sandbox.Process
	node             *Node
}

// Start runs a cluster, and waits until the driver is registered on its node.
func Start(ctx context.Context, config Config) (*Cluster, error) {
	return start(ctx, config, (*Cluster).startControlPlane, (*Cluster).startLoops, (*Cluster).startScheduler,
		(*Cluster).startNode, (*Cluster).install)
}

// StartEmpty runs a cluster without a node and without programs of ours, beside all loops of kube-controller-manager.
func StartEmpty(ctx context.Context, config Config) (*Cluster, error) {
	config.Side = Upstream
	return start(ctx, config, (*Cluster).startControlPlane, (*Cluster).startLoops, (*Cluster).startScheduler)
}

// start runs the steps, and stops the cluster if one fails.
func start(ctx context.Context, config Config, steps ...func(*Cluster, context.Context) error) (*Cluster, error) {
	if err := config.Side.check(); err != nil {
		return nil, err
	}
	release, err := releaseIn(config.Source)
	if err != nil {
		return nil, err
	}
	c := &Cluster{config: config, release: release}
	for _, step := range steps {
		if err := step(c, ctx); err != nil {
			return nil, errors.Join(err, c.Stop())
		}
	}
	return c, nil
}

// Image returns the name of one of our images.
func (c *Cluster) Image(name string) string { return registry + "/" + name + ":" + c.release }

// Dir returns the directory with data and logs.
func (c *Cluster) Dir() string { return c.config.Dir }

// NodeDir returns the directory with the data of the node.
func (c *Cluster) NodeDir() string { return filepath.Join(c.config.Dir, "node") }

// DriverDir returns a path in the driver's data directory.
func (c *Cluster) DriverDir(names ...string) string {
	return filepath.Join(append([]string{c.NodeDir(), "lib", "kubelet", "plugins", driver.Name}, names...)...)
}

// startControlPlane starts the API server.
func (c *Cluster) startControlPlane(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, Patience, fmt.Errorf("the API server was not ready within %s", Patience))
	defer cancel()
	running, err := sandbox.StartCluster(ctx, sandbox.ClusterConfig{Config: sandbox.Config{
		Binaries: sandbox.Binaries{Dir: c.config.Binaries}, Dir: c.config.Dir,
		ExtraArgs: []string{"enable-admission-plugins=ServiceAccount", "kubelet-preferred-address-types=InternalIP"},
	}})
	if err != nil {
		return err
	}
	c.running, c.Client, c.Kubeconfig = running, running.Plane.Client(), running.Plane.AdminKubeconfig
	return nil
}

// startLoops starts kube-controller-manager.
func (c *Cluster) startLoops(ctx context.Context) error {
	loops := "*"
	if c.config.Side != Upstream {
		loops += loopsOff
	}
	process, err := c.running.Plane.StartControllerManager(ctx, loops,
		sandbox.Controller{Args: []string{"--secure-port=0"}})
	if err == nil {
		c.loops = process
		c.running.Add(process)
	}
	return err
}

// startScheduler starts kube-scheduler.
func (c *Cluster) startScheduler(ctx context.Context) (err error) {
	kubeconfig, err := c.kubeconfig(ctx, "system:kube-scheduler")
	if err != nil {
		return err
	}
	c.scheduler, err = c.run(ctx, "kube-scheduler", filepath.Join("node", "kube-scheduler"),
		"--leader-elect=false", "--secure-port=0", "--kubeconfig="+kubeconfig)
	return err
}

// kubeconfig writes a kubeconfig for a user and returns its file.
func (c *Cluster) kubeconfig(ctx context.Context, user string, groups ...string) (string, error) {
	return c.running.Plane.Kubeconfig(ctx, sandbox.User(user, groups...))
}

// run starts a program of the folder with the programs.
func (c *Cluster) run(ctx context.Context, name, path string, args ...string) (*sandbox.Process, error) {
	return c.running.Run(ctx, sandbox.Program{
		Name: name, Path: filepath.Join(c.config.Binaries, path), Args: args,
		LogFile: filepath.Join(c.config.Dir, name+".log"),
	})
}

// ended returns an error if a program of the cluster has ended by itself.
func (c *Cluster) ended() error { return c.running.Ended() }

// Wait waits until ctx or a program of the cluster ends.
func (c *Cluster) Wait(ctx context.Context) {
	processes := append(c.running.Processes(), c.running.Plane.Process)
	ended := make(chan struct{}, len(processes))
	for _, process := range processes {
		go func() {
			<-process.Done()
			ended <- struct{}{}
		}()
	}
	select {
	case <-ctx.Done():
	case <-ended:
	}
}

// Stop ends the cluster. The error names the programs that ended before, or unsuccessfully.
func (c *Cluster) Stop() error {
	if c.running == nil {
		return nil
	}
	failures := []error{c.running.Ended()}
	for _, process := range []*sandbox.Process{c.scheduler, c.loops} { // they take SIGTERM for an error
		if process != nil {
			failures = append(failures, c.running.Kill(process))
		}
	}
	for _, process := range c.running.Processes() {
		if process.Ended() != nil { // named above
			c.running.Forget(process)
		}
	}
	return errors.Join(append(failures, c.running.Stop(context.Background()))...) // the launcher removes its cgroups
}

// Remove removes data and logs.
func (c *Cluster) Remove() error {
	if err := os.RemoveAll(c.config.Dir); err != nil {
		return fmt.Errorf("remove data of the cluster: %w", err)
	}
	return nil
}

// asKubectl is the environment variable that makes this program run as kubectl.
const asKubectl = "EXEUNT_NODE_AS_KUBECTL"

// RunKubectl runs kubectl if a cluster started this program for it, and reports whether it
// did. Programs call it first.
func RunKubectl() bool {
	if os.Getenv(asKubectl) == "" {
		return false
	}
	util.CheckErr(cmd.NewDefaultKubectlCommand().Execute()) // ends the program on an error
	return true
}

// kubectl runs a kubectl command as the administrator.
func (c *Cluster) kubectl(ctx context.Context, args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find kubectl: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, Patience, fmt.Errorf("it did not end within %s", Patience))
	defer cancel()
	command := exec.CommandContext(ctx, self, args...)
	command.Env = append(os.Environ(), asKubectl+"=1", "KUBECONFIG="+c.Kubeconfig, "HOME="+c.config.Dir)
	output, err := command.CombinedOutput()
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, output)
	}
	return nil
}
