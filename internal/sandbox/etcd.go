package sandbox

import (
	"context"
	"errors"
	"path/filepath"
)

// startEtcd starts etcd as a process of its own.
func (c *ControlPlane) startEtcd(ctx context.Context) (err error) {
	args := []string{"etcd", "--data-dir=" + filepath.Join(c.config.Dir, "etcd")}
	if !c.config.Durable {
		args = append(args, "--in-memory-speed")
	}
	c.Etcd, err = Start(ctx, Program{
		Name: "etcd", Path: c.program, Args: args, LogFile: filepath.Join(c.config.Dir, "etcd.log"), ReadyLine: "controlplane: etcd ",
	})
	return err
}

// Stop ends the API server before etcd, see Process.Stop.
func (c *ControlPlane) Stop(ctx context.Context) error {
	if c.Etcd == nil {
		return c.Process.Stop(ctx)
	}
	return errors.Join(c.Process.Stop(ctx), c.Etcd.Stop(ctx))
}

// Kill ends the API server and etcd as a crash does.
func (c *ControlPlane) Kill() error {
	var errs []error
	for _, process := range []*Process{c.Process, c.Etcd} {
		if process != nil {
			errs = append(errs, process.Kill())
		}
	}
	return errors.Join(errs...)
}
