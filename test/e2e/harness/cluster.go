package harness

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/test/sandbox"
	"github.com/exeunt-io/exeunt/test/upstream/rbac"
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
	// SeparateEtcd lets the test store objects past the API server.
	SeparateEtcd bool
	// Restarts gives the API server an address to which it can return.
	Restarts bool
	// DriverFlags, ControllerFlags and ProvisionerFlags are further flags of the mock
	// driver, our pv-controller and our provisioner, separated by spaces.
	DriverFlags, ControllerFlags, ProvisionerFlags string
	// Machines is the number of machines of a cloud, with kube-controller-manager and all its loops, see JoinCloud.
	Machines int
	// Teardown adds what a cluster has that goes away: the loops of kube-controller-manager for workloads, or all with
	// UpstreamLoops, load balancers, snapshots, and kubelets that end pods (but those of nodes named DeadNode...).
	Teardown bool
	// MachineFlags and LoopFlags are further flags of cloudmock and of this kube-controller-manager.
	MachineFlags, LoopFlags string
}

// Cluster is a control plane and the running programs of one setup.
type Cluster struct {
	Plane       *sandbox.ControlPlane
	Driver      *sandbox.Driver
	Provisioner *sandbox.Process
	Client      kubernetes.Interface
	// Balancers are the load balancers of a setup with Teardown.
	Balancers *sandbox.Balancers
	Dir       string

	sandbox *sandbox.Cluster
	cloud   *Cloud // nil without machines
	// loops are those of kube-controller-manager of a setup with Teardown.
	loops *sandbox.Process
	// kubelets ends what acts as kubelets, nil for nothing.
	kubelets func() error
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
	c.sandbox, err = sandbox.StartCluster(ctx, sandbox.ClusterConfig{
		Config:       sandbox.Config{Binaries: Binaries(), Dir: dir, SeparateEtcd: how.SeparateEtcd},
		FixedAddress: how.Restarts,
		Manifests:    []fs.FS{deploy.Manifests},
	})
	if err != nil {
		return c, err
	}
	c.Plane, c.Client = c.sandbox.Plane, c.sandbox.Plane.Client()
	if err = CheckVersion(c.Plane); err != nil {
		return c, err
	}
	if err = c.StartDriver(ctx, strings.Fields(how.DriverFlags)...); err != nil {
		return c, err
	}
	if !how.NoPrograms {
		if err = c.StartPrograms(ctx, how); err != nil {
			return c, err
		}
	}
	if err = c.startSurroundings(ctx, how); err != nil {
		return c, err
	}
	return c, c.createClasses(ctx)
}

// StartDriver starts the driver of the cluster.
func (c *Cluster) StartDriver(ctx context.Context, flags ...string) (err error) {
	c.Driver, err = c.sandbox.StartDriver(ctx, sandbox.DriverConfig{Dir: c.Dir, Args: flags})
	return err
}

// StartPrograms starts the controllers of the setup.
func (c *Cluster) StartPrograms(ctx context.Context, how Setup) (err error) {
	if how.UpstreamLoops || how.UpstreamSidecar {
		if err := c.GrantUpstream(ctx); err != nil {
			return err
		}
	}
	controllers := []sandbox.Controller{{HonorReclaimPolicy: !how.GateOff, Args: strings.Fields(how.ControllerFlags)}}
	switch {
	case how.UpstreamLoops && how.Teardown:
		controllers = nil // all loops run
	case how.UpstreamLoops:
		controllers = []sandbox.Controller{{}}
	case how.LeaderElection:
		controllers = replicas(how)
	}
	for _, controller := range controllers {
		if _, err := c.sandbox.StartLoops(ctx, how.UpstreamLoops, controller); err != nil {
			return err
		}
	}
	if how.NoProvisioner {
		return nil
	}
	sidecar := sandbox.Controller{
		HonorReclaimPolicy: !how.GateOff && !how.ProvisionerGateOff,
		Args:               append([]string{"--http-endpoint=127.0.0.1:0"}, strings.Fields(how.ProvisionerFlags)...),
	}
	if how.UpstreamSidecar {
		sidecar = sandbox.Controller{}
	}
	c.Provisioner, err = c.sandbox.StartProvisioner(ctx, how.UpstreamSidecar, c.Driver, sidecar)
	return err
}

func replicas(how Setup) []sandbox.Controller {
	args := []string{"--leader-elect=true"}
	if how.ShortLease {
		args = append(args, "--leader-elect-lease-duration=12s", "--leader-elect-renew-deadline=8s",
			"--leader-elect-retry-period=500ms")
	}
	return []sandbox.Controller{
		{Name: "pv-controller-0", HonorReclaimPolicy: !how.GateOff, Args: args},
		{Name: "pv-controller-1", HonorReclaimPolicy: !how.GateOff, Args: args},
	}
}

// Add makes the cluster stop a process of the test, which must not end before.
func (c *Cluster) Add(process *sandbox.Process) { c.sandbox.Add(process) }

// Processes returns the controllers in the order of their start.
func (c *Cluster) Processes() []*sandbox.Process { return c.sandbox.Processes() }

// ExpectEnd excludes the process from the check that no process has died.
func (c *Cluster) ExpectEnd(process *sandbox.Process) { c.sandbox.Forget(process) }

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
func NewClass(name, provisioner string, policy v1.PersistentVolumeReclaimPolicy,
	mode storagev1.VolumeBindingMode) storagev1.StorageClass {
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
	err := c.sandbox.Ended()
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
	if c.sandbox == nil {
		return nil
	}
	var err error
	if c.kubelets != nil {
		err = c.kubelets()
	}
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	return errors.Join(err, c.sandbox.Stop(ctx))
}

// GrantUpstream gives upstream's programs the rights that its own manifests grant.
func (c *Cluster) GrantUpstream(ctx context.Context) error {
	if err := sandbox.Apply(ctx, c.Plane.RESTConfig(), rbac.Manifests); err != nil {
		return fmt.Errorf("grant upstream's rights: %w", err)
	}
	return nil
}
