package demo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"k8s.io/client-go/kubernetes"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/examples"
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

// ClusterConfig says how a cluster runs.
type ClusterConfig struct {
	// Binaries is where the programs are.
	Binaries sandbox.Binaries
	// Keep leaves the directory behind when the cluster stops.
	Keep bool
	// Progress prints what is being started, and what is kept.
	Progress Progress
	// KubeAPIServer is the path of a kube-apiserver that runs instead of upstream's, or "".
	KubeAPIServer string
	// Examples: the manifests of the controllers in examples are applied instead of those of our controllers.
	Examples bool
	// Died is called with the reason when a program ends without being stopped, from a
	// goroutine of its own.
	Died func(error)
}

// Cluster is a control plane and, once they are started, a mock driver and both
// controllers.
type Cluster struct {
	config  ClusterConfig
	dir     string
	sandbox *sandbox.Cluster
	driver  *sandbox.Driver
	pair    Pair
	// controllers run, in the order of their start.
	controllers []*sandbox.Process
}

// StartCluster starts a control plane and applies the manifests of both
// controllers.
func StartCluster(ctx context.Context, config ClusterConfig) (*Cluster, error) {
	dir, err := os.MkdirTemp("", "exeunt-")
	if err != nil {
		return nil, fmt.Errorf("make directory of the cluster: %w", err)
	}
	c := &Cluster{config: config, dir: dir}
	manifests := []fs.FS{deploy.Manifests}
	if config.Examples {
		manifests = []fs.FS{examples.Manifests}
	}
	err = config.Progress.Do(ctx, "starting etcd and kube-apiserver", func(ctx context.Context) (err error) {
		c.sandbox, err = sandbox.StartCluster(ctx, sandbox.ClusterConfig{
			Config: sandbox.Config{Binaries: config.Binaries, Dir: dir, AuditObjects: true,
				KubeAPIServer: config.KubeAPIServer},
			Manifests: manifests, Died: config.Died,
		})
		return err
	})
	if err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
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
	c.driver, err = c.sandbox.StartDriver(ctx, sandbox.DriverConfig{Dir: dir, Args: args})
	return err
}

// startControllers starts both controllers.
func (c *Cluster) startControllers(ctx context.Context, programs Programs) error {
	c.pair = Ours
	if err := c.startLoops(ctx, sandbox.Controller{HonorReclaimPolicy: programs.Honor,
		Args: programs.Controller}); err != nil {
		return err
	}
	return c.startProvisioner(ctx, sandbox.Controller{HonorReclaimPolicy: programs.Honor, Args: programs.Provisioner})
}

// ApplyClass creates the storage class in the cluster.
func (c *Cluster) ApplyClass(ctx context.Context) error {
	return sandbox.ApplyYAML(ctx, c.sandbox.Plane.RESTConfig(), []byte(class))
}

// Client returns the administrator's client.
func (c *Cluster) Client() kubernetes.Interface { return c.sandbox.Plane.Client() }

// Kubeconfig returns the path of the administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return c.sandbox.Plane.AdminKubeconfig }

// CallLog returns the path of the file with the calls of the driver.
func (c *Cluster) CallLog() string { return c.driver.CallLog }

// StopControllers stops both controllers and leaves the driver.
func (c *Cluster) StopControllers() error {
	var errs []error
	for _, controller := range slices.Backward(c.controllers) {
		errs = append(errs, c.sandbox.End(context.Background(), controller))
	}
	c.controllers = nil
	return errors.Join(errs...)
}

// StopPrograms stops both controllers and the driver.
func (c *Cluster) StopPrograms() error {
	return errors.Join(c.StopControllers(), c.sandbox.End(context.Background(), c.driver.Process))
}

// Stop stops all programs and removes the directory unless Keep is set.
func (c *Cluster) Stop() error {
	var err error
	if c.sandbox != nil {
		err = c.sandbox.Stop(context.Background())
	}
	if c.config.Keep {
		fmt.Fprintln(c.config.Progress.Out, "everything is kept in", c.dir)
		return err
	}
	return errors.Join(err, os.RemoveAll(c.dir))
}
