package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const cloudController = "cloud-controller"

// Balancers are the load balancers of a cloud, and the service controller that makes them. See test/cloud.
type Balancers struct {
	*Process

	dir string
}

// Balancer is a load balancer.
type Balancer struct {
	Name string
	// Service is namespace/name.
	Service string
	UID     string
	Address string
}

// StartCloudController starts the service controller of a cloud. The load balancers are those of an earlier one on the
// cluster, if any.
func (c *Cluster) StartCloudController(ctx context.Context) (*Balancers, error) {
	path, err := c.config.Binaries.find("", cloudController, "make build-upstream")
	if err != nil {
		return nil, err
	}
	kubeconfig, err := c.Plane.Kubeconfig(ctx, ServiceAccount(metav1.NamespaceSystem, "service-controller"))
	if err != nil {
		return nil, err
	}
	b := &Balancers{dir: c.Dir}
	b.Process, err = c.Run(ctx, Program{
		Path: path, LogFile: filepath.Join(c.Dir, cloudController+".log"), ReadyLine: "cloud-controller: ready",
		Args: []string{"--kubeconfig=" + kubeconfig, "--state=" + b.State(), "--faults=" + b.file("faults")},
	})
	return b, err
}

func (b *Balancers) file(name string) string { return filepath.Join(b.dir, "balancers."+name) }

// State returns the file with a line for each load balancer.
func (b *Balancers) State() string { return b.file("state") }

// List returns the load balancers, also once the controller has ended.
func (b *Balancers) List() ([]Balancer, error) { return readAll[Balancer](b.State()) }

// SetFaults replaces all faults, a YAML list. They are in force for the next call.
func (b *Balancers) SetFaults(faults string) error {
	err := os.WriteFile(b.file("new"), []byte(faults), 0o600)
	if err == nil {
		err = os.Rename(b.file("new"), b.file("faults"))
	}
	if err != nil {
		return fmt.Errorf("replace faults of the load balancers: %w", err)
	}
	return nil
}
