// Package garbagecollector takes the place of upstream's package of this name in upstream's
// integration tests, which are otherwise unchanged: its collector is not in the process of the
// test, but the program garbage-collector. "make e2e-garbage-integration" says how.
package garbagecollector

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
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
	"k8s.io/client-go/rest"
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
func NewGarbageCollector(ctx context.Context, client kubernetes.Interface, _ metadata.Interface,
	_ meta.ResettableRESTMapper,
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

// kubeconfigFormat is a kubeconfig without credentials: the proxy has those of the test.
const kubeconfigFormat = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: 'http://%s'}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
users: [{name: u, user: {token: unused}}]
`

// serveProxy serves a proxy that sends requests as the client of the test does: with its
// credentials, and with the delays that a test adds. It returns the kubeconfig of the proxy.
func serveProxy(ctx context.Context, client kubernetes.Interface,
	dir string) (kubeconfig string, stop func(), err error) {
	core, ok := client.CoreV1().RESTClient().(*rest.RESTClient)
	if !ok {
		return "", nil, errors.New("serve proxy: the client of the test is not for a real API server")
	}
	address := core.Get().URL()
	reverse := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: address.Scheme, Host: address.Host})
	reverse.Transport, reverse.FlushInterval = withoutToken{core.Client.Transport}, -1
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("serve proxy: %w", err)
	}
	server := &http.Server{Handler: reverse, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	kubeconfig = filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(kubeconfig, fmt.Appendf(nil, kubeconfigFormat, listener.Addr()), 0o600); err != nil {
		return "", nil, errors.Join(fmt.Errorf("write kubeconfig: %w", err), server.Close())
	}
	return kubeconfig, func() { _ = server.Close() }, nil
}

// withoutToken drops the program's token, so that the transport adds that of the test.
type withoutToken struct{ http.RoundTripper }

func (t withoutToken) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Del("Authorization")
	return t.RoundTripper.RoundTrip(request)
}
