package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"

	"github.com/exeunt-io/exeunt/test/controlplane/internal/credentials"
	"github.com/exeunt-io/exeunt/test/controlplane/internal/datadir"
)

const (
	// startTimeout is the time limit for the API server to become ready.
	startTimeout = 2 * time.Minute
	// stopTimeout is the time limit for the API server to finish its requests.
	stopTimeout = 8 * time.Second
)

// AdminKubeconfig is the kubeconfig of the administrator in the data directory.
const AdminKubeconfig = "admin.kubeconfig"

// errEnded: the API server stopped by itself.
var errEnded = errors.New("kube-apiserver ended by itself")

// Config configures a control plane.
type Config struct {
	// Dir is the data directory.
	Dir datadir.Dir
	// SkipFsync makes etcd faster. A crash of the machine then loses data, a crash of the
	// process does not.
	SkipFsync bool
	// Etcd is the endpoint of an etcd in another process. Empty starts one in this process.
	Etcd string
	// AuditLog is the file for a JSON line per finished request, or empty.
	AuditLog string
	// ExtraArgs are further flags of kube-apiserver, as key=value.
	ExtraArgs []string
	// Kubeconfigs has the identity of each kubeconfig file to write.
	Kubeconfigs map[string]credentials.Identity
	// Ready is called with the URL once the control plane can be used.
	Ready func(url string) error
}

// Run serves until ctx ends, and then stops the API server before etcd.
func Run(ctx context.Context, config Config) (err error) {
	api, url, err := prepare(config)
	if err != nil {
		return err
	}
	store, err := openStorage(ctx, config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.close()) }()
	api.Etcd.StorageConfig.Transport.ServerList = []string{store.endpoint}

	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	served := make(chan error, 1)
	go func() { served <- serveAPI(ctx, api) }()
	go func() {
		if err := announce(ctx, config, url); err != nil {
			stop(err)
		}
	}()
	select {
	case err := <-served:
		return cmp.Or(err, errEnded)
	case err := <-store.failed():
		stop(fmt.Errorf("run etcd: %w", err))
	case <-ctx.Done():
	}
	return errors.Join(reason(ctx), drain(served))
}

// openStorage starts etcd, or returns one that another process runs.
func openStorage(ctx context.Context, config Config) (*storage, error) {
	if config.Etcd != "" {
		return &storage{endpoint: config.Etcd}, nil
	}
	return startEtcd(ctx, config.Dir, config.SkipFsync)
}

// RunEtcd serves etcd alone until ctx ends. It calls ready with the endpoint.
func RunEtcd(ctx context.Context, directory datadir.Dir, skipFsync bool, ready func(endpoint string) error) (err error) {
	store, err := startEtcd(ctx, directory, skipFsync)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.close()) }()
	if err := ready(store.endpoint); err != nil {
		return err
	}
	select {
	case err := <-store.failed():
		return fmt.Errorf("run etcd: %w", err)
	case <-ctx.Done():
		return nil
	}
}

// prepare returns the API server's options and URL. It reports input errors before anything
// runs.
func prepare(config Config) (*options.ServerRunOptions, string, error) {
	authority, err := certificates(config.Dir)
	if err != nil {
		return nil, "", err
	}
	flags, err := arguments(config)
	if err != nil {
		return nil, "", err
	}
	api, err := parse(flags)
	if err != nil {
		return nil, "", err
	}
	api.SecureServing.Listener, err = config.Dir.Listen()
	if err != nil {
		return nil, "", err
	}
	url := "https://" + api.SecureServing.Listener.Addr().String()
	return api, url, writeKubeconfigs(authority, url, config)
}

// writeKubeconfigs writes the administrator's and the configured kubeconfig files.
func writeKubeconfigs(authority *credentials.Authority, url string, config Config) error {
	if err := authority.WriteKubeconfig(config.Dir.File(AdminKubeconfig), url, credentials.Admin); err != nil {
		return err
	}
	for file, identity := range config.Kubeconfigs {
		if err := authority.WriteKubeconfig(file, url, identity); err != nil {
			return err
		}
	}
	return nil
}

// announce calls Ready when the control plane is ready.
func announce(ctx context.Context, config Config, url string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := waitUntilReady(ctx, config.Dir.File(AdminKubeconfig)); err != nil {
		return err
	}
	return config.Ready(url)
}

// drain waits, for at most stopTimeout, until the API server has finished its requests. A
// client that never closes its connection must not block the end of the process.
func drain(served <-chan error) error {
	select {
	case err := <-served:
		return err
	case <-time.After(stopTimeout):
		klog.InfoS("Stopped before every request was answered", "waited", stopTimeout)
		return nil
	}
}

// reason returns the failure that ended ctx, or nil if the caller canceled ctx.
func reason(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}
