package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// Setup describes the programs of a cluster. The zero value is our pv-controller and
// our provisioner with their default gates, beside the mock driver.
type Setup struct {
	// GateOff turns HonorPVReclaimPolicy off in both of our programs.
	GateOff bool
	// ProvisionerGateOff turns HonorPVReclaimPolicy off in our provisioner only.
	ProvisionerGateOff bool
	// UpstreamLoops runs the real kube-controller-manager instead of our pv-controller.
	UpstreamLoops bool
	// UpstreamSidecar runs the real csi-provisioner instead of our provisioner.
	UpstreamSidecar bool
	// LeaderElection runs two replicas of our pv-controller, one of which leads.
	LeaderElection bool
	// ShortLease sets a lease duration of 12 s for these replicas.
	ShortLease bool
	// NoProvisioner leaves the provisioner to the test.
	NoProvisioner bool
	// NoPrograms runs the mock driver only.
	NoPrograms bool
	// Restarts gives the API server an address to which it can return.
	Restarts bool
	// DriverFlags, ControllerFlags and ProvisionerFlags are further flags of the mock
	// driver, our pv-controller and our provisioner, separated by spaces.
	DriverFlags, ControllerFlags, ProvisionerFlags string
}

// Cluster is a control plane and the running programs of one setup.
type Cluster struct {
	Plane       *sandbox.ControlPlane
	Driver      *sandbox.Driver
	Provisioner *sandbox.Process
	Processes   []*sandbox.Process // includes the provisioner
	Client      kubernetes.Interface
	Dir         string
	// restarts: an API server that begins refuses what it does not know the rights for yet.
	restarts bool
}

// Storage classes of every cluster, named for their reclaim policy or binding mode.
const (
	DeleteClass = "delete"
	RetainClass = "retain"
	WaitClass   = "wait" // WaitForFirstConsumer, policy Delete
)

// startCluster starts the cluster. On error it stops the processes that it has started.
func startCluster(ctx context.Context, how Setup) (c *Cluster, err error) {
	dir, err := os.MkdirTemp("", "exeunt-e2e-")
	if err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	c = &Cluster{Dir: dir, restarts: how.Restarts}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.stop())
		}
	}()
	if how.Restarts {
		err = sandbox.ChooseAddress(dir)
	}
	if err != nil {
		return c, err
	}
	if c.Plane, err = sandbox.StartControlPlane(ctx, sandbox.Config{Binaries: Binaries(), Dir: dir}); err != nil {
		return c, err
	}
	if err = CheckVersion(c.Plane); err != nil {
		return c, err
	}
	c.Client = c.Plane.Client()
	if err = sandbox.Apply(ctx, c.Plane.RESTConfig(), deploy.Manifests); err != nil {
		return c, err
	}
	if c.Driver, err = sandbox.StartDriver(ctx, sandbox.DriverConfig{Binaries: Binaries(), Dir: dir, Args: strings.Fields(how.DriverFlags)}); err != nil {
		return c, err
	}
	if !how.NoPrograms {
		if err = c.StartPrograms(ctx, how); err != nil {
			return c, err
		}
	}
	return c, c.createClasses(ctx)
}

// StartPrograms starts the controllers of the setup.
func (c *Cluster) StartPrograms(ctx context.Context, how Setup) error {
	loops, sidecar := c.Plane.StartPVController, c.Plane.StartProvisioner
	if how.UpstreamLoops {
		loops = c.startUpstreamLoops
	}
	if how.UpstreamSidecar {
		sidecar = c.startUpstreamSidecar
	}
	controllers := []sandbox.Controller{{HonorReclaimPolicy: !how.GateOff, Args: strings.Fields(how.ControllerFlags)}}
	if how.LeaderElection {
		controllers = replicas(how)
	}
	for _, controller := range controllers {
		process, err := loops(ctx, controller)
		if err != nil {
			return err
		}
		c.Processes = append(c.Processes, process)
	}
	if how.NoProvisioner {
		return nil
	}
	var err error
	c.Provisioner, err = sidecar(ctx, c.Driver, sandbox.Controller{
		HonorReclaimPolicy: !how.GateOff && !how.ProvisionerGateOff,
		Args:               append([]string{"--http-endpoint=127.0.0.1:0"}, strings.Fields(how.ProvisionerFlags)...),
	})
	if err != nil {
		return err
	}
	c.Processes = append(c.Processes, c.Provisioner)
	return nil
}

func replicas(how Setup) []sandbox.Controller {
	args := []string{"--leader-elect=true"}
	if how.ShortLease {
		args = append(args, "--leader-elect-lease-duration=12s", "--leader-elect-renew-deadline=8s", "--leader-elect-retry-period=500ms")
	}
	return []sandbox.Controller{
		{Name: "pv-controller-0", HonorReclaimPolicy: !how.GateOff, Args: args},
		{Name: "pv-controller-1", HonorReclaimPolicy: !how.GateOff, Args: args},
	}
}

// ExpectEnd excludes the process from the check that no process has died.
func (c *Cluster) ExpectEnd(process *sandbox.Process) {
	c.Processes = slices.DeleteFunc(c.Processes, func(p *sandbox.Process) bool { return p == process })
}

func (c *Cluster) createClasses(ctx context.Context) error {
	immediate, wait := storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer
	for _, class := range []storagev1.StorageClass{
		NewClass(DeleteClass, c.Driver.DriverName, v1.PersistentVolumeReclaimDelete, immediate),
		NewClass(RetainClass, c.Driver.DriverName, v1.PersistentVolumeReclaimRetain, immediate),
		NewClass(WaitClass, c.Driver.DriverName, v1.PersistentVolumeReclaimDelete, wait),
	} {
		if _, err := c.Client.StorageV1().StorageClasses().Create(ctx, &class, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create class %s: %w", class.Name, err)
		}
	}
	return nil
}

// NewClass returns a storage class.
func NewClass(name, provisioner string, policy v1.PersistentVolumeReclaimPolicy, mode storagev1.VolumeBindingMode) storagev1.StorageClass {
	return storagev1.StorageClass{
		ObjectMeta:        metav1.ObjectMeta{Name: name},
		Provisioner:       provisioner,
		ReclaimPolicy:     &policy,
		VolumeBindingMode: &mode,
	}
}

// finish stops the cluster. The test fails if one of our programs died or was refused
// a request; the logs stay then.
func (c *Cluster) finish(t testing.TB) {
	t.Helper()
	err := c.died()
	if !c.restarts {
		err = errors.Join(err, sandbox.Refused(c.Plane.AuditLog, "system:serviceaccount:"+deploy.Namespace))
	}
	if err == nil {
		err = c.stop()
	} else {
		err = errors.Join(err, fmt.Errorf("the logs are in %s", c.Dir), c.halt())
	}
	if err != nil {
		t.Errorf("stop cluster: %v", err)
	}
}

// stop stops the processes and removes the directory.
func (c *Cluster) stop() error {
	return errors.Join(c.halt(), os.RemoveAll(c.Dir))
}

func (c *Cluster) halt() error {
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	var errs []error
	for _, process := range c.Processes {
		errs = append(errs, process.Stop(ctx))
	}
	if c.Driver != nil {
		errs = append(errs, c.Driver.Stop(ctx))
	}
	if c.Plane != nil {
		errs = append(errs, c.Plane.Stop(ctx))
	}
	return errors.Join(errs...)
}

func (c *Cluster) died() error {
	for _, process := range c.Processes {
		select {
		case <-process.Done():
			if err := process.Err(); err != nil {
				return err
			}
		default:
		}
	}
	return nil
}

// startUpstreamLoops starts the three loops of the real kube-controller-manager.
func (c *Cluster) startUpstreamLoops(ctx context.Context, controller sandbox.Controller) (*sandbox.Process, error) {
	if err := c.GrantUpstream(ctx); err != nil {
		return nil, err
	}
	return c.Plane.StartUpstreamLoops(ctx, sandbox.Controller{Name: controller.Name})
}

// startUpstreamSidecar starts the real csi-provisioner.
func (c *Cluster) startUpstreamSidecar(ctx context.Context, driver *sandbox.Driver, _ sandbox.Controller) (*sandbox.Process, error) {
	if err := c.GrantUpstream(ctx); err != nil {
		return nil, err
	}
	return c.Plane.StartUpstreamProvisioner(ctx, driver, sandbox.Controller{})
}

// GrantUpstream gives upstream's programs the rights that its own manifests grant.
func (c *Cluster) GrantUpstream(ctx context.Context) error {
	if err := sandbox.Apply(ctx, c.Plane.RESTConfig(), os.DirFS(InCheckout("test", "upstream", "rbac"))); err != nil {
		return fmt.Errorf("grant upstream's rights: %w", err)
	}
	return nil
}
