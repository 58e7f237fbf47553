package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/internal/sandbox"
)

// setup says which programs run in a cluster. The zero value is ours, gate off.
type setup struct {
	// honor is the gate HonorPVReclaimPolicy of both programs of ours.
	honor bool
	// upstreamLoops and upstreamSidecar put upstream's programs in the place of ours.
	upstreamLoops, upstreamSidecar bool
	// provisionerOff turns the gate off for the provisioner alone.
	provisionerOff bool
	// elected runs two replicas of the pv-controller, of which one leads.
	elected bool
	// idle runs no program but the driver.
	idle bool
	// bare runs no provisioner: the test starts its own.
	bare bool
	// brief has the elected replicas hold their lease for seconds only.
	brief bool
	// alone keeps the cluster for the one test of that name.
	alone string
	// driver, controller and provisioner are further flags of the mock driver, of our
	// pv-controller and of our provisioner, separated by spaces.
	driver, controller, provisioner string
}

// cluster is a control plane with the programs of one setup.
type cluster struct {
	plane       *sandbox.ControlPlane
	driver      *sandbox.Driver
	provisioner *sandbox.Process
	processes   []*sandbox.Process // the provisioner among them
	client      kubernetes.Interface
	dir         string
}

// Names of the storage classes; their policy is as their name says.
const (
	deleteClass = "delete"
	retainClass = "retain"
	waitClass   = "wait" // policy Delete, WaitForFirstConsumer
)

// start starts the cluster; what was started is stopped again if it fails.
func start(ctx context.Context, how setup) (c *cluster, err error) {
	dir, err := os.MkdirTemp("", "exeunt-e2e-")
	if err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	c = &cluster{dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.stop())
		}
	}()
	if c.plane, err = sandbox.StartControlPlane(ctx, sandbox.Config{Binaries: binaries(), Dir: dir}); err != nil {
		return c, err
	}
	c.client = c.plane.Client()
	if err = sandbox.Apply(ctx, c.plane.RESTConfig(), deploy.Manifests); err != nil {
		return c, err
	}
	if c.driver, err = sandbox.StartDriver(ctx, sandbox.DriverConfig{Binaries: binaries(), Dir: dir, Args: strings.Fields(how.driver)}); err != nil {
		return c, err
	}
	if !how.idle {
		if err = c.startPrograms(ctx, how); err != nil {
			return c, err
		}
	}
	return c, c.createClasses(ctx)
}

func (c *cluster) startPrograms(ctx context.Context, how setup) error {
	loops, sidecar := c.plane.StartPVController, c.plane.StartProvisioner
	if how.upstreamLoops {
		loops = c.startUpstreamLoops
	}
	if how.upstreamSidecar {
		sidecar = c.startUpstreamSidecar
	}
	controllers := []sandbox.Controller{{HonorReclaimPolicy: how.honor, Args: strings.Fields(how.controller)}}
	if how.elected {
		controllers = replicas(how)
	}
	for _, controller := range controllers {
		process, err := loops(ctx, controller)
		if err != nil {
			return err
		}
		c.processes = append(c.processes, process)
	}
	if how.bare {
		return nil
	}
	var err error
	c.provisioner, err = sidecar(ctx, c.driver, sandbox.Controller{
		HonorReclaimPolicy: how.honor && !how.provisionerOff,
		Args:               append([]string{"--http-endpoint=127.0.0.1:0"}, strings.Fields(how.provisioner)...),
	})
	if err != nil {
		return err
	}
	c.processes = append(c.processes, c.provisioner)
	return nil
}

func replicas(how setup) []sandbox.Controller {
	args := []string{"--leader-elect=true"}
	if how.brief {
		args = append(args, "--leader-elect-lease-duration=12s", "--leader-elect-renew-deadline=8s", "--leader-elect-retry-period=500ms")
	}
	return []sandbox.Controller{
		{Name: "pv-controller-0", HonorReclaimPolicy: how.honor, Args: args},
		{Name: "pv-controller-1", HonorReclaimPolicy: how.honor, Args: args},
	}
}

// logContains says whether the process has logged the text.
func (s *scene) logContains(process *sandbox.Process, text string) bool {
	s.t.Helper()
	logged, err := os.ReadFile(process.LogFile())
	s.must(err, "read log")
	return strings.Contains(string(logged), text)
}

// forget leaves a process that died on purpose out of what is checked at the end.
func (c *cluster) forget(process *sandbox.Process) {
	c.processes = slices.DeleteFunc(c.processes, func(p *sandbox.Process) bool { return p == process })
}

func (c *cluster) createClasses(ctx context.Context) error {
	immediate, wait := storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer
	for _, class := range []storagev1.StorageClass{
		newClass(deleteClass, c.driver.DriverName, v1.PersistentVolumeReclaimDelete, immediate),
		newClass(retainClass, c.driver.DriverName, v1.PersistentVolumeReclaimRetain, immediate),
		newClass(waitClass, c.driver.DriverName, v1.PersistentVolumeReclaimDelete, wait),
	} {
		if _, err := c.client.StorageV1().StorageClasses().Create(ctx, &class, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create class %s: %w", class.Name, err)
		}
	}
	return nil
}

func newClass(name, provisioner string, policy v1.PersistentVolumeReclaimPolicy, mode storagev1.VolumeBindingMode) storagev1.StorageClass {
	return storagev1.StorageClass{
		ObjectMeta:        metav1.ObjectMeta{Name: name},
		Provisioner:       provisioner,
		ReclaimPolicy:     &policy,
		VolumeBindingMode: &mode,
	}
}

// finish stops the cluster and says whether any of our programs was refused a
// request or died.
func (c *cluster) finish() error {
	errs := []error{c.died(), sandbox.Refused(c.plane.AuditLog, "system:serviceaccount:"+deploy.Namespace)}
	if err := errors.Join(errs...); err != nil {
		return errors.Join(err, fmt.Errorf("its logs are kept in %s", c.dir), c.halt())
	}
	return c.stop()
}

// stop stops the processes and removes the directory.
func (c *cluster) stop() error {
	return errors.Join(c.halt(), os.RemoveAll(c.dir))
}

func (c *cluster) halt() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var errs []error
	for _, process := range c.processes {
		errs = append(errs, process.Stop(ctx))
	}
	if c.driver != nil {
		errs = append(errs, c.driver.Stop(ctx))
	}
	if c.plane != nil {
		errs = append(errs, c.plane.Stop(ctx))
	}
	return errors.Join(errs...)
}

func (c *cluster) died() error {
	for _, process := range c.processes {
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
