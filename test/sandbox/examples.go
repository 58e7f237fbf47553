package sandbox

import (
	"context"
	"path/filepath"
)

// KubeAPIServer is the program with graceful deletion of custom resources, VirtualMachine and Database are controllers
// of examples that use it.
const (
	KubeAPIServer  = "kube-apiserver"
	VirtualMachine = "virtual-machine"
	Database       = "database"
)

// StartExample starts a controller of examples with its service account. Its manifests are applied.
func (c *Cluster) StartExample(ctx context.Context, name string) (*Process, error) {
	path, err := c.config.Binaries.GracefulPath(name)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := c.Plane.Kubeconfig(ctx, ServiceAccount(name, name))
	if err != nil {
		return nil, err
	}
	return c.Run(ctx, Program{
		Name: name, Path: path, LogFile: filepath.Join(c.Dir, name+".log"), ReadyLine: name + ": ready",
		Args: []string{"--kubeconfig=" + kubeconfig, "--state-dir=" + filepath.Join(c.Dir, name)},
	})
}
