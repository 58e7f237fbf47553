package provisioner

import (
	"errors"
	"fmt"
	"strings"
	"time"

	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/leaderelection"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller/metrics"

	"github.com/exeunt-io/exeunt/pkg/controller/leader"
)

// Option changes how a [ProvisionController] runs. Options of v10 have the same name and
// meaning here.
type Option func(*settings) error

// settings are what the options set.
type settings struct {
	threadiness int
	// retryFirst and retryMost bound the time between two tries for one object.
	retryFirst, retryMost time.Duration
	addFinalizer          bool
	// journal: Provision is called with a durable journal entry only.
	journal, idempotent, sharedSources bool
	provisionTimeout, deletionTimeout  time.Duration
	// unresolvedAfter is how long Provision is repeated for a deleted claim though only an
	// administrator can find out about its volume.
	unresolvedAfter time.Duration

	leaderElection                            bool
	leaderElectionNamespace                   string
	leaseDuration, renewDeadline, retryPeriod time.Duration
	// node is that of a process which is one of several that work at the same time.
	node string

	nodes                       corelisters.NodeLister
	metrics                     metrics.Metrics
	metricsPort                 int32
	metricsAddress, metricsPath string
}

// Defaults of options that v10 does not have.
const (
	// DefaultRetryFirst and DefaultRetryMost are the defaults of RetryInterval.
	DefaultRetryFirst = time.Second
	DefaultRetryMost  = 5 * time.Minute
	// DefaultUnresolvedAfter is the default of UnresolvedAfter.
	DefaultUnresolvedAfter = time.Hour
)

func defaults() settings {
	return settings{
		threadiness: controller.DefaultThreadiness, retryFirst: DefaultRetryFirst, retryMost: DefaultRetryMost,
		addFinalizer: true, journal: true, idempotent: true, unresolvedAfter: DefaultUnresolvedAfter,
		leaderElection: controller.DefaultLeaderElection,
		leaseDuration:  controller.DefaultLeaseDuration, renewDeadline: controller.DefaultRenewDeadline,
		retryPeriod: controller.DefaultRetryPeriod,
		metrics:     metrics.New(metricsSubsystem),
		metricsPort: controller.DefaultMetricsPort, metricsAddress: controller.DefaultMetricsAddress,
		metricsPath: controller.DefaultMetricsPath,
	}
}

// metricsSubsystem is the first part of the names of the metrics of v10.
const metricsSubsystem = "controller"

// set returns an option that cannot fail.
func set(change func(*settings)) Option {
	return func(s *settings) error {
		change(s)
		return nil
	}
}

// Threadiness is the number of claim workers, and the number of volume workers. The
// default is 4, as in v10.
func Threadiness(threadiness int) Option {
	return func(s *settings) error {
		if threadiness < 1 {
			return errors.New("Threadiness must be at least 1")
		}
		s.threadiness = threadiness
		return nil
	}
}

// RetryInterval bounds the time between two tries for one claim or volume that fails. It
// takes the place of RateLimiter and ExponentialBackOffOnError of v10. Failed claims and
// volumes are retried until they succeed.
func RetryInterval(first, most time.Duration) Option {
	return func(s *settings) error {
		if first <= 0 || most < first {
			return errors.New("RetryInterval: the first interval must be longer than 0 and no longer than the longest one")
		}
		s.retryFirst, s.retryMost = first, most
		return nil
	}
}

// AddFinalizer determines whether volumes with the policy Delete carry the finalizer
// external-provisioner.volume.kubernetes.io/finalizer, from their first write on. It is
// the gate HonorPVReclaimPolicy. The default is true; in v10 it is false.
func AddFinalizer(addFinalizer bool) Option {
	return set(func(s *settings) { s.addFinalizer = addFinalizer })
}

// Journal determines whether an entry is durable in the journal before Provision is
// called: the gate ProvisioningJournal. The default is true. Entries of earlier processes
// are finished in any case.
func Journal(journal bool) Option {
	return set(func(s *settings) { s.journal = journal })
}

// Idempotent tells whether a second call of Provision with the same PVName returns the
// existing volume, also after a restart of the process. The default is true. With false,
// a call that a crash has interrupted is not repeated: "exeunt journal list" names the
// volume, and a claim that still waits gets a new volume.
func Idempotent(idempotent bool) Option {
	return set(func(s *settings) { s.idempotent = idempotent })
}

// SharedSources tells whether Provision may return the same source for several volumes,
// such as an export that several claims share. The default is false: a second volume with
// the same source is refused, and a volume is not deleted while another volume has the
// same source.
func SharedSources(shared bool) Option {
	return set(func(s *settings) { s.sharedSources = shared })
}

// UnresolvedAfter is how long Provision is repeated for a deleted claim though only an
// administrator can find out about its volume. The default is an hour.
func UnresolvedAfter(wait time.Duration) Option {
	return func(s *settings) error {
		if wait <= 0 {
			return errors.New("UnresolvedAfter must be longer than 0")
		}
		s.unresolvedAfter = wait
		return nil
	}
}

// ProvisionTimeout bounds one call of Provision. The default is unlimited. A call that
// ends with its context counts as ProvisioningInBackground.
func ProvisionTimeout(timeout time.Duration) Option {
	return func(s *settings) error {
		s.provisionTimeout = timeout
		return notNegative("ProvisionTimeout", timeout)
	}
}

// DeletionTimeout bounds one call of Delete. The default is unlimited.
func DeletionTimeout(timeout time.Duration) Option {
	return func(s *settings) error {
		s.deletionTimeout = timeout
		return notNegative("DeletionTimeout", timeout)
	}
}

func notNegative[T time.Duration | int32](option string, value T) error {
	if value < 0 {
		return fmt.Errorf("%s must not be negative", option)
	}
	return nil
}

// LeaderElection determines whether the controller works only while it holds a lease. The
// default is true. The lease is that of v10, so that v10 and this controller never work
// at once. With false, one process may work at a time, or one on each node with the option
// [Node]: a process takes the journal over from the one that runs, which then ends.
func LeaderElection(leaderElection bool) Option {
	return set(func(s *settings) { s.leaderElection = leaderElection })
}

// Node is the name of the node that this process works on, where a process without leader
// election runs on each node and a Qualifier selects its claims. It gives the process a
// journal of its own. The default is none: one process works at a time.
func Node(name string) Option {
	return set(func(s *settings) { s.node = name })
}

// LeaderElectionNamespace is the namespace of all leases: that of the election and those
// of the journal. The default is the namespace of the pod.
func LeaderElectionNamespace(namespace string) Option {
	return set(func(s *settings) { s.leaderElectionNamespace = namespace })
}

// LeaseDuration is how long a lease is valid that was not renewed. The default is 15s. It
// must be 4s longer than RenewDeadline: work ends before the lease does.
func LeaseDuration(duration time.Duration) Option {
	return set(func(s *settings) { s.leaseDuration = duration })
}

// RenewDeadline is how long the leader tries to renew its lease. The default is 10s.
func RenewDeadline(deadline time.Duration) Option {
	return set(func(s *settings) { s.renewDeadline = deadline })
}

// RetryPeriod is the time between two tries to get or renew the lease. The default is 2s.
func RetryPeriod(period time.Duration) Option {
	return set(func(s *settings) { s.retryPeriod = period })
}

// NodesLister is where selected nodes are looked up first. By default they are read from
// the API server, and so is a node in a second call for the same claim, unless the process
// has no right to get nodes. The caller starts the informer behind the lister.
func NodesLister(nodes corelisters.NodeLister) Option {
	return set(func(s *settings) { s.nodes = nodes })
}

// MetricsInstance is where claims and volumes are counted. By default the controller has
// metrics of its own.
func MetricsInstance(instance metrics.Metrics) Option {
	return set(func(s *settings) { s.metrics = instance })
}

// MetricsPort is the port at which metrics are served. The default is 0: none.
func MetricsPort(port int32) Option {
	return func(s *settings) error {
		s.metricsPort = port
		return notNegative("MetricsPort", port)
	}
}

// MetricsAddress is the address at which metrics are served. The default is 0.0.0.0.
func MetricsAddress(address string) Option {
	return set(func(s *settings) { s.metricsAddress = address })
}

// MetricsPath is the path of the metrics. The default is /metrics.
func MetricsPath(path string) Option {
	return func(s *settings) error {
		if !strings.HasPrefix(path, "/") {
			return errors.New("MetricsPath must begin with /")
		}
		s.metricsPath = path
		return nil
	}
}

// newSettings returns the defaults with the options applied.
func newSettings(options []Option) (settings, error) {
	s := defaults()
	for _, option := range options {
		if err := option(&s); err != nil {
			return s, fmt.Errorf("apply option: %w", err)
		}
	}
	return s, errors.Join(s.checkNode(), s.checkDeadlines())
}

// checkNode returns an error if the processes could not share their work by node.
func (s *settings) checkNode() error {
	switch {
	case strings.Contains(s.node, "/"):
		return fmt.Errorf("Node must be the name of a node, not %q", s.node)
	case s.node != "" && s.leaderElection:
		return errors.New("Node needs LeaderElection(false): with a lease, only one of the processes works")
	}
	return nil
}

// checkDeadlines returns an error if the deadlines leave no time to renew the lease, or to
// end all work before the lease expires.
func (s *settings) checkDeadlines() error {
	switch {
	case !s.leaderElection:
		return nil
	case s.retryPeriod <= 0 || s.renewDeadline <= time.Duration(leaderelection.JitterFactor*float64(s.retryPeriod)):
		return fmt.Errorf("RenewDeadline must be longer than %v times RetryPeriod, which must be longer than 0",
			leaderelection.JitterFactor)
	case s.leaseDuration.Truncate(time.Second) < s.renewDeadline+leader.StopReserve:
		return fmt.Errorf("LeaseDuration, in whole seconds, must be at least %v longer than RenewDeadline",
			leader.StopReserve)
	}
	return nil
}
