package demo

import (
	"context"
	"errors"
	"fmt"
	"os"

	"k8s.io/client-go/kubernetes"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// ClassName is the class of the volumes in a cluster.
const ClassName = "exeunt-mock"

// class is the manifest of the class.
const class = `apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: ` + ClassName + `
provisioner: ` + csimock.DefaultName + `
reclaimPolicy: Delete
volumeBindingMode: Immediate
`

// The number of programs that run: the control plane is started first and stopped last.
const (
	onlyPlane = iota + 1
	onlyPlaneAndDriver
)

// ClusterConfig says how a cluster runs.
type ClusterConfig struct {
	// Binaries is where the programs are.
	Binaries sandbox.Binaries
	// Keep leaves the directory behind when the cluster stops.
	Keep bool
	// Progress prints what is being started, and what is kept.
	Progress Progress
	// Died is called with the reason when a program ends without being stopped, from a
	// goroutine of its own.
	Died func(error)
}

// Cluster is a control plane and, once they are started, a mock driver and both
// controllers.
type Cluster struct {
	config   ClusterConfig
	dir      string
	plane    *sandbox.ControlPlane
	driver   *sandbox.Driver
	pair     Pair
	programs []*program
}

// program is a process that must run until it is stopped.
type program struct {
	process  *sandbox.Process
	stop     func(context.Context) error
	stopping chan struct{} // closed before stop is called
	watched  chan struct{} // closed once the process is no longer watched
	died     bool          // the process ended before stop; set when watched is closed
}

// StartCluster starts a control plane and applies the manifests of both
// controllers.
func StartCluster(ctx context.Context, config ClusterConfig) (*Cluster, error) {
	dir, err := os.MkdirTemp("", "exeunt-")
	if err != nil {
		return nil, fmt.Errorf("make directory of the cluster: %w", err)
	}
	cluster := &Cluster{config: config, dir: dir}
	err = config.Progress.Do(ctx, "starting etcd and kube-apiserver", cluster.startPlane)
	if err != nil {
		return nil, errors.Join(err, cluster.Stop())
	}
	return cluster, nil
}

// startPlane starts the control plane.
func (c *Cluster) startPlane(ctx context.Context) error {
	plane, err := sandbox.StartControlPlane(ctx, sandbox.Config{Binaries: c.config.Binaries, Dir: c.dir, AuditObjects: true})
	if err != nil {
		return err
	}
	c.plane = plane
	// The data of the control plane is not needed, so killing it saves time.
	c.guard(plane.Process, func(context.Context) error { return plane.Kill() })
	return sandbox.Apply(ctx, plane.RESTConfig(), deploy.Manifests)
}

// Programs says how the programs of a cluster run.
type Programs struct {
	// Honor is the gate HonorPVReclaimPolicy of both controllers.
	Honor bool
	// Driver, Controller and Provisioner are further flags of csimock, pv-controller and
	// provisioner.
	Driver, Controller, Provisioner []string
}

// StartPrograms starts a mock driver with no volumes and both controllers.
func (c *Cluster) StartPrograms(ctx context.Context, programs Programs) error {
	what := "starting csimock, and pv-controller and provisioner with " + gateName(programs.Honor)
	return c.config.Progress.Do(ctx, what, func(ctx context.Context) error {
		if err := c.startDriver(ctx, func(string) ([]string, error) { return programs.Driver, nil }); err != nil {
			return err
		}
		return c.startControllers(ctx, programs)
	})
}

// startDriver starts a driver in a new directory, so that the driver has no volumes. Its further
// flags may name files in the directory.
func (c *Cluster) startDriver(ctx context.Context, flags func(dir string) ([]string, error)) error {
	dir, err := os.MkdirTemp(c.dir, "storage-")
	if err != nil {
		return fmt.Errorf("make directory of the driver: %w", err)
	}
	args, err := flags(dir)
	if err != nil {
		return err
	}
	c.driver, err = sandbox.StartDriver(ctx, sandbox.DriverConfig{Binaries: c.config.Binaries, Dir: dir, Args: args})
	if err != nil {
		return err
	}
	c.guard(c.driver.Process, c.driver.Stop)
	return nil
}

// startControllers starts both controllers.
func (c *Cluster) startControllers(ctx context.Context, programs Programs) error {
	controller, err := c.plane.StartPVController(ctx, sandbox.Controller{HonorReclaimPolicy: programs.Honor, Args: programs.Controller})
	if err != nil {
		return err
	}
	c.guard(controller, controller.Stop)
	provisioner, err := c.plane.StartProvisioner(ctx, c.driver, sandbox.Controller{HonorReclaimPolicy: programs.Honor, Args: programs.Provisioner})
	if err != nil {
		return err
	}
	c.guard(provisioner, provisioner.Stop)
	return nil
}

// guard registers a process to be stopped with the cluster, and reports the process if
// it ends before.
func (c *Cluster) guard(process *sandbox.Process, stop func(context.Context) error) {
	guarded := &program{process: process, stop: stop, stopping: make(chan struct{}), watched: make(chan struct{})}
	c.programs = append(c.programs, guarded)
	go func() {
		defer close(guarded.watched)
		select {
		case <-guarded.stopping:
		case <-process.Done():
			guarded.died = true
			c.config.Died(death(process))
		}
	}()
}

// kill ends the program as a crash does, without a report.
func (p *program) kill() error {
	close(p.stopping)
	<-p.watched
	return p.process.Kill()
}

// end stops the program. A program that died was reported before and is no error here.
func (p *program) end() error {
	close(p.stopping)
	<-p.watched
	if err := p.stop(context.Background()); !p.died {
		return err
	}
	return nil
}

// death returns the error of a process that ended without being stopped.
func death(process *sandbox.Process) error {
	if err := process.Err(); err != nil {
		return err
	}
	return fmt.Errorf("run %s: the process ended by itself", process.Name())
}

// ApplyClass creates the storage class in the cluster.
func (c *Cluster) ApplyClass(ctx context.Context) error {
	return sandbox.ApplyYAML(ctx, c.plane.RESTConfig(), []byte(class))
}

// Client returns the administrator's client.
func (c *Cluster) Client() kubernetes.Interface { return c.plane.Client() }

// Kubeconfig returns the path of the administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return c.plane.AdminKubeconfig }

// CallLog returns the path of the file with the calls of the driver.
func (c *Cluster) CallLog() string { return c.driver.CallLog }

// StopControllers stops both controllers and leaves the driver.
func (c *Cluster) StopControllers() error { return c.stopAllBut(onlyPlaneAndDriver) }

// StopPrograms stops both controllers and the driver.
func (c *Cluster) StopPrograms() error { return c.stopAllBut(onlyPlane) }

// Stop stops all programs and removes the directory unless Keep is set.
func (c *Cluster) Stop() error {
	err := c.stopAllBut(0)
	if c.config.Keep {
		fmt.Fprintln(c.config.Progress.Out, "everything is kept in", c.dir)
		return err
	}
	return errors.Join(err, os.RemoveAll(c.dir))
}

// stopAllBut stops programs in reverse order of their start until count are left.
func (c *Cluster) stopAllBut(count int) error {
	var errs []error
	for len(c.programs) > count {
		last := c.programs[len(c.programs)-1]
		c.programs = c.programs[:len(c.programs)-1]
		errs = append(errs, last.end())
	}
	return errors.Join(errs...)
}
