package library

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/internal/sandbox"
)

// patience bounds every wait; it is met only by what never comes.
const patience = 60 * time.Second

// The service account of the provisioner, whose rights are in the example's manifests.
const account = "hostpath-provisioner"

func TestMain(m *testing.M) {
	if text := os.Getenv(settingsVariable); text != "" {
		if err := provision(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	if running.plane != nil {
		if err := running.finish(code == 0); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if err := results.write(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// cluster is a control plane with our pv-controller, shared by all tests.
type cluster struct {
	plane    *sandbox.ControlPlane
	binder   *sandbox.Process
	identity string // kubeconfig of the provisioner's service account
	dir      string
}

var running cluster

var startOnce = sync.OnceValue(func() error { return running.start() })

func (c *cluster) start() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var err error
	if c.dir, err = os.MkdirTemp("", "exeunt-library-"); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	if c.plane, err = sandbox.StartControlPlane(ctx, sandbox.Config{Binaries: binaries(), Dir: c.dir}); err != nil {
		return err
	}
	if err := sandbox.Apply(ctx, c.plane.RESTConfig(), deploy.Manifests); err != nil {
		return err
	}
	if err := sandbox.Apply(ctx, c.plane.RESTConfig(), os.DirFS(filepath.Join(root, "examples", "hostpath-provisioner", "deploy"))); err != nil {
		return err
	}
	if c.identity, err = c.plane.Kubeconfig(ctx, sandbox.ServiceAccount(account, account)); err != nil {
		return err
	}
	c.binder, err = c.plane.StartPVController(ctx, sandbox.Controller{HonorReclaimPolicy: true})
	return err
}

// finish stops the cluster and reports requests that the provisioners had no right to. It
// keeps the logs unless all tests have passed.
func (c *cluster) finish(passed bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if c.binder != nil {
		if err := c.binder.Stop(ctx); err != nil {
			return err
		}
	}
	if err := c.plane.Stop(ctx); err != nil {
		return err
	}
	if err := sandbox.Refused(c.plane.AuditLog, "system:serviceaccount:"+account); err != nil {
		return fmt.Errorf("%w; logs are kept in %s", err, c.dir)
	}
	if !passed {
		return nil
	}
	return os.RemoveAll(c.dir)
}

// root is the top of this checkout.
var root = filepath.Join("..", "..", "..")

// binaries are the built programs.
func binaries() sandbox.Binaries {
	if dir := os.Getenv("EXEUNT_BIN"); dir != "" {
		return sandbox.Binaries{Dir: dir}
	}
	return sandbox.Binaries{Dir: filepath.Join(root, "bin")}
}
