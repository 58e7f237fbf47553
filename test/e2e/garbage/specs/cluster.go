package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

const (
	// startLimit is the time limit to start a program.
	startLimit = 3 * time.Minute
	// stopLimit is the time limit to stop all programs.
	stopLimit = time.Minute
	// pollPeriod is the period of the look whether a program is ready.
	pollPeriod = 100 * time.Millisecond
)

// cluster is a control plane, its controllers and a node without a kubelet.
type cluster struct {
	config
	plane *sandbox.ControlPlane
	// controllers is kube-controller-manager, collector is our garbage-collector. Nil means
	// that it does not run.
	controllers, collector *sandbox.Process
	// switches counts how often the side changed.
	switches int
}

// startCluster starts the programs of the side. A switching cluster begins with stock.
func startCluster(ctx context.Context, c config) (started *cluster, err error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	started = &cluster{config: c}
	defer func() {
		if err != nil {
			err = errors.Join(err, started.stop())
		}
	}()
	started.plane, err = sandbox.StartControlPlane(ctx, sandbox.Config{
		Binaries: c.binaries, Dir: c.dir, ExtraArgs: []string{"enable-admission-plugins=ServiceAccount"},
	})
	if err != nil {
		return started, err
	}
	if err := sandbox.Apply(ctx, started.plane.RESTConfig(), deploy.Manifests); err != nil {
		return started, err
	}
	if err := sandbox.Apply(ctx, started.plane.RESTConfig(), deploy.GarbageCollector); err != nil {
		return started, err
	}
	if c.side == ours {
		err = started.startCollector(ctx)
	}
	return started, errors.Join(err, started.startControllers(ctx), started.createNode(ctx))
}

// startCollector starts our garbage-collector with the flags and the rights of its manifests,
// and waits until it is ready.
func (c *cluster) startCollector(ctx context.Context) (err error) {
	kubeconfig, err := c.plane.Kubeconfig(ctx, sandbox.ServiceAccount(deploy.Namespace, deploy.GarbageCollectorAccount))
	if err != nil {
		return err
	}
	path, err := c.binaries.Path("garbage-collector")
	if err != nil {
		return err
	}
	c.collector, err = c.start(ctx, path, "/readyz", "--kubeconfig="+kubeconfig, "--leader-elect=true")
	return err
}

// startControllers starts kube-controller-manager, with its collector unless ours works.
func (c *cluster) startControllers(ctx context.Context) error {
	kubeconfig, err := c.plane.Kubeconfig(ctx, sandbox.User("system:kube-controller-manager"))
	if err != nil {
		return err
	}
	path, err := c.binaries.UpstreamPath("kube-controller-manager")
	if err != nil {
		return err
	}
	controllers := "--controllers=*"
	if c.collector != nil {
		controllers += ",-garbage-collector-controller"
	}
	keys := filepath.Join(c.dir, "data", "pki")
	c.controllers, err = c.start(ctx, path, "/healthz", controllers, "--kubeconfig="+kubeconfig, "--leader-elect=false",
		"--use-service-account-credentials", "--root-ca-file="+filepath.Join(keys, "ca.crt"),
		"--service-account-private-key-file="+filepath.Join(keys, "service-account.key"), "--cert-dir="+c.dir)
	return err
}

// start starts a program that serves at a free port, and waits until the path answers 200.
func (c *cluster) start(ctx context.Context, program, path string, args ...string) (*sandbox.Process, error) {
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	process, err := sandbox.Start(ctx, sandbox.Program{
		Path: program, Args: append(args, fmt.Sprint("--secure-port=", port), "--v=2"),
		LogFile: filepath.Join(c.dir, filepath.Base(program)+".log"),
	})
	if err != nil {
		return nil, err
	}
	ready := func(ctx context.Context) (bool, error) {
		return answers(ctx, fmt.Sprintf("https://127.0.0.1:%d%s", port, path)), process.Err()
	}
	if err := wait.PollUntilContextTimeout(ctx, pollPeriod, startLimit, true, ready); err != nil {
		return process, fmt.Errorf("wait until %s is ready: %w, see %s", process.Name(), err, process.LogFile())
	}
	return process, nil
}

// freePort returns a port that no program listens on.
func freePort(ctx context.Context) (int, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	return listener.Addr().(*net.TCPAddr).Port, listener.Close()
}

// answers reports whether the address answers 200. The programs make their certificates at
// start, so that no client can verify them.
func answers(ctx context.Context, address string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return false
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	return response.Body.Close() == nil && response.StatusCode == http.StatusOK
}

// stop stops all programs. It returns an error if one of them died.
func (c *cluster) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	var errs []error
	for _, process := range []*sandbox.Process{c.collector, c.controllers} {
		if process != nil {
			errs = append(errs, process.Stop(ctx))
		}
	}
	if c.plane != nil {
		errs = append(errs, c.plane.Stop(ctx))
	}
	return errors.Join(errs...)
}
