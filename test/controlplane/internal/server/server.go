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
	// startTimeout is how long the API server may take to become ready.
	startTimeout = 2 * time.Minute
	// stopTimeout is how long the API server may take to finish its requests.
	stopTimeout = 8 * time.Second
)

// AdminKubeconfig is the file in the data directory by which its owner may do
// everything.
const AdminKubeconfig = "admin.kubeconfig"

// errEnded says that the API server stopped though nobody asked it to.
var errEnded = errors.New("kube-apiserver ended by itself")

// Config says how a control plane runs.
type Config struct {
	// Dir holds all its data.
	Dir datadir.Dir
	// SkipFsync makes etcd fast by losing data when the machine crashes. A
	// crash of the process alone loses nothing.
	SkipFsync bool
	// AuditLog is the file that gets a line of JSON for each finished request,
	// or empty.
	AuditLog string
	// ExtraArgs are further flags of kube-apiserver, as key=value.
	ExtraArgs []string
	// Kubeconfigs says for whom kubeconfig files are written, by file.
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
	store, err := startEtcd(ctx, config.Dir, config.SkipFsync)
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
	case err := <-store.Err():
		stop(fmt.Errorf("run etcd: %w", err))
	case <-ctx.Done():
	}
	return errors.Join(reason(ctx), drain(served))
}

// prepare returns the API server's options and URL. What the user got wrong
// comes out here, before anything runs.
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

// writeKubeconfigs writes the administrator's kubeconfig and those asked for.
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

// announce tells the caller when the control plane can be used.
func announce(ctx context.Context, config Config, url string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := waitUntilReady(ctx, config.Dir.File(AdminKubeconfig)); err != nil {
		return err
	}
	return config.Ready(url)
}

// drain waits for the API server to finish its requests, for a while: what is
// written is safe in etcd, and a client that never lets go must not keep the
// process.
func drain(served <-chan error) error {
	select {
	case err := <-served:
		return err
	case <-time.After(stopTimeout):
		klog.InfoS("Stopped before every request was answered", "waited", stopTimeout)
		return nil
	}
}

// reason returns the failure that ended ctx, or nil if the caller ended it.
func reason(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}
