package provisioner

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	componentconfig "k8s.io/component-base/config"
	"k8s.io/klog/v2"
	library "sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/controller/leader"
	"github.com/exeunt-io/exeunt/pkg/provisioner/engine"
	"github.com/exeunt-io/exeunt/pkg/provisioner/identity"
	"github.com/exeunt-io/exeunt/pkg/provisioner/journalstore"
)

// ProvisionController creates PersistentVolumes for PersistentVolumeClaims and deletes
// them by their reclaim policy.
type ProvisionController struct {
	logger  klog.Logger
	client  kubernetes.Interface
	storage *storage
	settings
	// invalid is the error of an option.
	invalid error
	hasRun  atomic.Bool
}

// NewProvisionController returns a controller that creates and deletes volumes with the
// provisioner for claims and volumes that carry its name. The arguments are those of v10.
// An error of an option is returned by Run.
func NewProvisionController(logger klog.Logger, client kubernetes.Interface, provisionerName string,
	provisioner library.Provisioner, options ...Option) *ProvisionController {
	settings, err := newSettings(options)
	if provisionerName == "" {
		err = errors.New("the provisioner has no name")
	}
	return &ProvisionController{
		logger: logger, client: client, settings: settings, invalid: err,
		storage: &storage{
			name: provisionerName, provisioner: provisioner, idempotent: settings.idempotent,
			sharedSources:    settings.sharedSources,
			provisionTimeout: settings.provisionTimeout, deletionTimeout: settings.deletionTimeout,
		},
	}
}

// HasRun reports whether Run was called.
func (c *ProvisionController) HasRun() bool { return c.hasRun.Load() }

// Run creates and deletes volumes until the context ends, which is no error. It returns
// an error if an option is invalid, if the lease was lost, or if another process has
// taken over the journal: nothing is written after that, and the process should end.
// After the end of the context, calls that are under way have 3s until their own context
// ends, and the lease is kept meanwhile. A call that ignores its context is not waited for
// longer: Run returns an error, and the lease expires. The call may then run beside one of
// the next leader. Without leader election Run waits for such a call without limit. v10
// exits at once. Run is called once.
func (c *ProvisionController) Run(ctx context.Context) error {
	ctx = klog.NewContext(ctx, c.logger)
	err := c.run(ctx)
	if errors.Is(err, journalstore.ErrLost) && !c.leaderElection {
		err = fmt.Errorf("%w; several processes at the same time need LeaderElection, or one on each node with the option Node", err)
	}
	if err != nil {
		c.logger.Error(err, "The provision controller has ended", "provisioner", c.storage.name)
	}
	return err
}

func (c *ProvisionController) run(ctx context.Context) error {
	switch {
	case c.invalid != nil:
		return c.invalid
	case !c.hasRun.CompareAndSwap(false, true):
		return errors.New("Run was called before")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var failure atomic.Pointer[error]
	err := c.work(ctx, func(err error) {
		failure.CompareAndSwap(nil, &err)
		cancel()
	})
	if failed := failure.Load(); failed != nil {
		return *failed
	}
	return err
}

// work ends with the context, which end ends with an error.
func (c *ProvisionController) work(ctx context.Context, end func(error)) error {
	journalMetrics, tracked := journalstore.NewMetrics(), engine.NewTracked()
	c.serve(ctx, append(journalMetrics.Collectors(), tracked.Collectors()...), listenAgain)
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("read host name for the source of events: %w", err)
	}
	recorder, stopEvents := tracked.Recorder(ctx, c.client, identity.EventSource(c.storage.name, host))
	defer stopEvents()
	namespace, err := identity.JournalNamespace(ctx, c.client, c.leaderElection, c.leaderElectionNamespace)
	if err != nil {
		return unlessStopped(ctx, err)
	}
	w := newWiring(c, namespace, recorder, journalMetrics, tracked)
	work, err := w.engine(end)
	if err != nil {
		return err
	}
	watching, stopWatching := context.WithCancel(ctx)
	w.informers.StartWithContext(watching)
	defer w.informers.Shutdown()
	defer stopWatching()
	if !controller.WaitForCacheSync(ctx, w.informers, func() []any { return nil }) {
		return nil
	}
	return c.lead(ctx, w, work)
}

// lead runs the engine while this process leads.
func (c *ProvisionController) lead(ctx context.Context, w *wiring, work *engine.Engine) error {
	election := c.election(w.namespace)
	election.Recorder = w.recorder
	if c.leaderElection {
		var err error
		if election.Watched, err = controller.MayWatch(ctx, c.client, coordinationv1.Resource("leases"),
			w.namespace); err != nil {
			klog.FromContext(ctx).Error(err, "Whether the leader Lease may be watched is unknown; it is read instead")
		}
	}
	watchdog := leaderelection.NewLeaderHealthzAdaptor(c.leaseDuration)
	return leader.Lead(ctx, election, c.client, watchdog, func(ctx context.Context, term controller.Term) error {
		work.Begin(term)
		klog.FromContext(ctx).Info("Working", "provisioner", c.storage.name, "workers", c.threadiness)
		work.Run(ctx)
		return nil
	})
}

// election describes the lease, which is called as v10's, but for capital letters: the API server refuses those.
func (c *ProvisionController) election(namespace string) leader.Election {
	return leader.Election{LeaderElectionConfiguration: componentconfig.LeaderElectionConfiguration{
		LeaderElect:       c.leaderElection,
		ResourceLock:      "leases",
		ResourceName:      strings.ToLower(strings.ReplaceAll(c.storage.name, "/", "-")),
		ResourceNamespace: namespace,
		LeaseDuration:     metav1.Duration{Duration: c.leaseDuration},
		RenewDeadline:     metav1.Duration{Duration: c.renewDeadline},
		RetryPeriod:       metav1.Duration{Duration: c.retryPeriod},
	}}
}

// unlessStopped returns the error, or nil if the controller was stopped: requests that are
// under way fail then.
func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// listenAgain is the time until the next attempt to listen at a port that is in use, as of another replica on the node.
const listenAgain = 5 * time.Second

// serve answers for metrics at MetricsPort until the context ends, whether this process
// leads or not. As v10, it tries again if it cannot listen, and serves the metrics of the default registry and the handlers of
// [http.DefaultServeMux], too.
func (c *ProvisionController) serve(ctx context.Context, own []prometheus.Collector, again time.Duration) {
	if c.metricsPort == 0 {
		return
	}
	address := net.JoinHostPort(c.metricsAddress, strconv.Itoa(int(c.metricsPort)))
	server := &http.Server{Handler: c.handler(own), ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := c.listen(ctx, server, address); !errors.Is(err, http.ErrServerClosed) && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Serving metrics failed, trying again", "address", address, "after", again)
		}
	}, again)
}

// listen serves at the address until the server is closed.
func (c *ProvisionController) listen(ctx context.Context, server *http.Server, address string) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen at MetricsAddress and MetricsPort %s: %w", address, err)
	}
	klog.FromContext(ctx).Info("Serving metrics", "address", listener.Addr().String(), "path", c.metricsPath)
	return server.Serve(listener)
}

// handler answers for metrics, and lets the program's own handlers answer for other paths.
func (c *ProvisionController) handler(own []prometheus.Collector) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(append(engine.Collectors(c.metrics), own...)...)
	mux := http.NewServeMux()
	mux.Handle(c.metricsPath, promhttp.HandlerFor(prometheus.Gatherers{registry, prometheus.DefaultGatherer},
		promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}))
	if c.metricsPath != "/" {
		mux.Handle("/", http.DefaultServeMux)
	}
	return mux
}
