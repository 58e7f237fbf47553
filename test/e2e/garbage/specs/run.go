package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/exeunt-io/exeunt/test/sandbox"
)

// specsLimit is the time limit of all specs.
const specsLimit = time.Hour

// runSpecs runs the specs, while the lease of the node is renewed and, with --side switching,
// the sides change. A spec that fails is no error, but part of the outcome.
func (c *cluster) runSpecs(ctx context.Context) (outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, specsLimit)
	defer cancel()
	background := []func(context.Context) error{c.keepNode}
	if c.side == switching {
		background = append(background, c.keepSwitching)
	}
	aside, stop := context.WithCancel(ctx)
	errs := make([]error, len(background))
	var running sync.WaitGroup
	for i, task := range background {
		running.Go(func() { errs[i] = task(aside) })
	}
	ran, err := c.runGinkgo(ctx)
	stop()
	running.Wait()
	return ran, errors.Join(append(errs, err)...)
}

// runGinkgo runs upstream's suite with upstream's runner.
func (c *cluster) runGinkgo(ctx context.Context) (outcome, error) {
	runner, runnerErr := c.binaries.UpstreamPath("ginkgo")
	suite, suiteErr := c.binaries.UpstreamPath("e2e.test")
	if err := errors.Join(runnerErr, suiteErr); err != nil {
		return outcome{}, err
	}
	const report = "report.json"
	process, err := sandbox.Start(ctx, sandbox.Program{
		Path: runner,
		Args: []string{
			fmt.Sprint("--procs=", c.processes), "--focus=" + c.focus, "--no-color", "--timeout=" + specsLimit.String(),
			"--output-dir=" + c.dir, "--json-report=" + report, suite, "--",
			"--kubeconfig=" + c.Plane.AdminKubeconfig, "--provider=skeleton",
		},
		LogFile: filepath.Join(c.dir, "ginkgo.log"),
	})
	if err != nil {
		return outcome{}, err
	}
	select {
	case <-process.Done():
	case <-ctx.Done():
		return outcome{}, errors.Join(context.Cause(ctx), process.Kill())
	}
	ran, err := readReport(filepath.Join(c.dir, report))
	if failed := new(exec.ExitError); err == nil && ran.err() == nil && errors.As(process.Err(), &failed) {
		err = process.Err()
	}
	return ran, err
}
