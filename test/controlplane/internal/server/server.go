package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
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
	// Program is the path of a kube-apiserver that runs instead of the built-in one, or empty.
	Program string
	// ExtraArgs are further flags of kube-apiserver, as key=value.
	ExtraArgs []string
	// Kubeconfigs has the identity of each kubeconfig file to write.
	Kubeconfigs map[string]credentials.Identity
	// Ready is called with the URL once the control plane can be used.
	Ready func(url string) error
}

// Run serves until ctx ends, and then stops the API server before etcd.
func Run(ctx context.Context, config Config) (err error) {
	serveAPI, url, err := prepare(config)
	if err != nil {
		return err
	}
	store, err := openStorage(ctx, config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.close()) }()

	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	served := make(chan error, 1)
	go func() { served <- serveAPI(ctx, store.endpoint) }()
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
func RunEtcd(ctx context.Context, directory datadir.Dir, skipFsync bool,
	ready func(endpoint string) error) (err error) {
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

// serve runs kube-apiserver on the etcd at the endpoint until ctx ends and the server has stopped.
type serve func(ctx context.Context, etcd string) error

// prepare returns the API server and its URL. It reports input errors before anything runs.
func prepare(config Config) (serve, string, error) {
	authority, err := certificates(config.Dir)
	if err != nil {
		return nil, "", err
	}
	flags, err := arguments(config)
	if err != nil {
		return nil, "", err
	}
	prepareServer := prepareBuiltIn
	if config.Program != "" {
		prepareServer = prepareProgram
	}
	serveAPI, address, err := prepareServer(config, flags)
	if err != nil {
		return nil, "", err
	}
	url := "https://" + address
	return serveAPI, url, writeKubeconfigs(authority, url, config)
}

// prepareBuiltIn returns a function that serves in this process, and the address.
func prepareBuiltIn(config Config, flags []string) (serve, string, error) {
	api, err := parse(flags)
	if err != nil {
		return nil, "", err
	}
	api.SecureServing.Listener, err = config.Dir.Listen()
	if err != nil {
		return nil, "", err
	}
	return func(ctx context.Context, etcd string) error {
		api.Etcd.StorageConfig.Transport.ServerList = []string{etcd}
		return runBuiltIn(ctx, api)
	}, api.SecureServing.Listener.Addr().String(), nil
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

// parse returns the options of kube-apiserver for the flags.
func parse(flags []string) (*options.ServerRunOptions, error) {
	server := options.NewServerRunOptions()
	set := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	set.Usage = func() {}
	for _, section := range server.Flags().FlagSets {
		set.AddFlagSet(section)
	}
	if err := set.Parse(flags); err != nil {
		return nil, fmt.Errorf("parse flags of kube-apiserver: %w", err)
	}
	if err := server.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return nil, fmt.Errorf("set feature gates: %w", err)
	}
	if err := logsapi.ValidateAndApply(server.Logs, utilfeature.DefaultFeatureGate); err != nil {
		return nil, fmt.Errorf("set up logging: %w", err)
	}
	return server, nil
}

// runBuiltIn runs kube-apiserver until ctx ends and it has stopped.
func runBuiltIn(ctx context.Context, server *options.ServerRunOptions) error {
	// The server's own clients log every use of a deprecated API.
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	completed, err := server.Complete(ctx)
	if err != nil {
		return fmt.Errorf("complete options of kube-apiserver: %w", err)
	}
	if errs := completed.Validate(); len(errs) != 0 {
		return fmt.Errorf("check options of kube-apiserver: %w", utilerrors.NewAggregate(errs))
	}
	if err := app.Run(ctx, completed); err != nil {
		return fmt.Errorf("run kube-apiserver: %w", err)
	}
	return nil
}

// readyPoll is the interval of readiness checks.
const readyPoll = 50 * time.Millisecond

// waitUntilReady returns once the API server is ready and has created the objects that
// clients need.
func waitUntilReady(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("read admin kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make admin client: %w", err)
	}
	last := errors.New("no readiness check has run yet")
	err = wait.PollUntilContextCancel(ctx, readyPoll, true, func(ctx context.Context) (bool, error) {
		last = checkReady(ctx, client)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for kube-apiserver: %w: %w", err, last)
	}
	return nil
}

// checkReady returns an error while /readyz fails, or the namespace "default" or the
// bootstrap roles of RBAC are missing.
func checkReady(ctx context.Context, client kubernetes.Interface) error {
	if err := client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
		return err
	}
	if _, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{}); err != nil {
		return err
	}
	_, err := client.RbacV1().ClusterRoles().Get(ctx, "cluster-admin", metav1.GetOptions{})
	return err
}
