// Package garbagecollector takes the place of upstream's package of this name in upstream's
// integration tests, which are otherwise unchanged: its collector is not in the process of the
// test, but the program garbage-collector. "make e2e-garbage-integration" says how.
package garbagecollector

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/controller-manager/pkg/informerfactory"
)

// The environment of the tests.
const (
	// binVariable names the directory of garbage-collector.
	binVariable = "EXEUNT_BIN"
	// logVariable names the directory that gets the log of each run.
	logVariable = "EXEUNT_LOGS"
)

// stopGrace is the time limit for the program to end after SIGTERM.
const stopGrace = 20 * time.Second

// GarbageCollector runs the program garbage-collector.
type GarbageCollector struct {
	client  kubernetes.Interface
	ignored map[schema.GroupResource]struct{}
	page    page
}

// DefaultIgnoredResources returns the resources that garbage-collector always ignores.
func DefaultIgnoredResources() map[schema.GroupResource]struct{} {
	return map[schema.GroupResource]struct{}{{Resource: "events"}: {}, {Group: "events.k8s.io", Resource: "events"}: {}}
}

// NewGarbageCollector returns a collector that reaches the API server as the client does. The
// program has its own watches, so that the informers are not used.
func NewGarbageCollector(ctx context.Context, client kubernetes.Interface, _ metadata.Interface, _ meta.ResettableRESTMapper,
	ignored map[schema.GroupResource]struct{}, _ informerfactory.InformerFactory, _ <-chan struct{},
) (*GarbageCollector, error) {
	if len(ignored) != len(DefaultIgnoredResources()) {
		return nil, fmt.Errorf("run garbage-collector: the test ignores %v", ignored)
	}
	page, err := newPage(ctx)
	return &GarbageCollector{client: client, ignored: ignored, page: page}, err
}

// Run runs the program until ctx ends. The time limit of the first lists is the program's own.
func (gc *GarbageCollector) Run(ctx context.Context, workers int, _ time.Duration) {
	if err := gc.run(ctx, workers); err != nil {
		panic(err)
	}
}

func (gc *GarbageCollector) run(ctx context.Context, workers int) (err error) {
	logs, err := os.MkdirTemp(os.Getenv(logVariable), "garbage-collector-")
	if err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	log, err := os.Create(filepath.Join(logs, "log"))
	if err != nil {
		return fmt.Errorf("create log: %w", err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	kubeconfig, stop, err := serveProxy(ctx, gc.client, logs)
	if err != nil {
		return err
	}
	defer stop()
	program := exec.CommandContext(ctx, filepath.Join(os.Getenv(binVariable), "garbage-collector"),
		"--kubeconfig="+kubeconfig, "--leader-elect=false", "--v=4", fmt.Sprint("--concurrent-gc-syncs=", workers),
		fmt.Sprint("--secure-port=", gc.page.port), "--authorization-always-allow-paths="+allowedPaths)
	program.Stdout, program.Stderr, program.WaitDelay = log, log, stopGrace
	program.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // also if the test panics
	program.Cancel = func() error { return program.Process.Signal(syscall.SIGTERM) }
	if err := program.Run(); ctx.Err() == nil {
		return fmt.Errorf("run garbage-collector: it ended: %w, see %s", err, log.Name())
	}
	return nil
}

// Sync returns at once: the program finds new kinds itself.
func (gc *GarbageCollector) Sync(context.Context, discovery.ServerResourcesInterface, time.Duration) {
}
