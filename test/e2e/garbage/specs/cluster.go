package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
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
	*sandbox.Cluster
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
	started.Cluster, err = sandbox.StartCluster(ctx, sandbox.ClusterConfig{
		Config: sandbox.Config{Binaries: c.binaries, Dir: c.dir,
			ExtraArgs: []string{"enable-admission-plugins=ServiceAccount"}},
		Manifests: []fs.FS{deploy.Manifests, deploy.GarbageCollector},
	})
	if err != nil {
		return nil, err
	}
	if c.side == ours {
		err = started.startCollector(ctx)
	}
	if err = errors.Join(err, started.startControllers(ctx), started.createNode(ctx)); err != nil {
		return nil, errors.Join(err, started.stop())
	}
	return started, nil
}

// startCollector starts our garbage-collector with the flags and the rights of its manifests,
// and waits until it is ready.
func (c *cluster) startCollector(ctx context.Context) (err error) {
	c.collector, err = c.start(ctx, c.Plane.StartGarbageCollector, "/readyz", "--leader-elect=true")
	return err
}

// startControllers starts kube-controller-manager, with its collector unless ours works.
func (c *cluster) startControllers(ctx context.Context) (err error) {
	controllers := "*"
	if c.collector != nil {
		controllers += ",-garbage-collector-controller"
	}
	start := func(ctx context.Context, how sandbox.Controller) (*sandbox.Process, error) {
		return c.Plane.StartControllerManager(ctx, controllers, how)
	}
	c.controllers, err = c.start(ctx, start, "/healthz", "--cert-dir="+c.dir)
	return err
}

// start starts a program that serves at a free port, and waits until the path answers 200.
func (c *cluster) start(
	ctx context.Context, program func(context.Context, sandbox.Controller) (*sandbox.Process, error), path string,
	args ...string,
) (*sandbox.Process, error) {
	port, err := sandbox.FreePort(ctx)
	if err != nil {
		return nil, err
	}
	process, err := program(ctx, sandbox.Controller{Args: append(args, fmt.Sprint("--secure-port=", port), "--v=2")})
	if err != nil {
		return nil, err
	}
	c.Add(process)
	ready := func(ctx context.Context) (bool, error) {
		return answers(ctx, fmt.Sprintf("https://127.0.0.1:%d%s", port, path)), process.Err()
	}
	if err := wait.PollUntilContextTimeout(ctx, pollPeriod, startLimit, true, ready); err != nil {
		return process, fmt.Errorf("wait until %s is ready: %w, see %s", process.Name(), err, process.LogFile())
	}
	return process, nil
}

// answers reports whether the address answers 200. The programs make their certificates at
// start, so that no client can verify them.
func answers(ctx context.Context, address string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return false
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DisableKeepAlives: true}}
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
	return c.Stop(ctx)
}
