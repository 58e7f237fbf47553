package runner

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	componentconfig "k8s.io/component-base/config"

	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/controller/leader"
	"github.com/exeunt-io/exeunt/pkg/controller/servertime"
	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

const (
	// Namespace has the Lease and the record.
	Namespace = teardown.Namespace
	// LeaseName is the Lease of the runners.
	LeaseName = teardown.LeaseName
	// FreezeName is the policy that refuses new disks and load balancers, and its binding.
	FreezeName = teardown.FreezeName
	// maxBatch is how many objects are deleted after one live read of Alive.
	maxBatch = 100
)

// Clients are the clients of a runner. They share one connection, which holds back writes until the Lease is known to
// be unchanged.
type Clients struct {
	Objects, Leases kubernetes.Interface
	Dynamic         dynamic.Interface
	Connection      *leader.Connection
	Clock           *servertime.Clock
	Config          *rest.Config
}

// Connect makes clients without a rate limit of their own: the API server says when it has enough.
func Connect(config *rest.Config, connection *leader.Connection) (*Clients, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = -1, 0
	clients := &Clients{Connection: connection, Clock: servertime.New(), Config: config}
	if connection == nil {
		clients.Connection = &leader.Connection{}
		config.Wrap(clients.Connection.Wrap)
	}
	config.Wrap(clients.Clock.Wrap)
	var err error
	for _, client := range []*kubernetes.Interface{&clients.Objects, &clients.Leases} {
		if *client, err = kubernetes.NewForConfig(config); err != nil {
			return nil, fmt.Errorf("connect to the API server: %w", err)
		}
	}
	structured := rest.CopyConfig(config)
	structured.ContentType, structured.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	if clients.Dynamic, err = dynamic.NewForConfig(structured); err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	return clients, nil
}

// Waits are all times that a runner waits for.
type Waits struct {
	// Round is the least time between two rounds.
	Round time.Duration
	// Quiet is the time between the two lists at the end: a call in flight becomes visible in it.
	Quiet time.Duration
	// Pause: a Lease and a word that are older at takeover are those of a restored etcd.
	Pause time.Duration
	// Probe is the time between two probes of the freeze, Freeze how long it may take until it is in force.
	Probe, Freeze time.Duration
	// Request is how long the answer to a requested claim is awaited.
	Request time.Duration
	// Status is the least time between two writes of the status, Explain between two explanations of what remains.
	Status, Explain time.Duration
	// Retry is the first backoff after an error, MaxRetry the last one. Check is the time between two checks of a cluster
	// that is not ready.
	Retry, MaxRetry, Check time.Duration
	// Lease, Renew and LeaseRetry are the times of the leader election.
	Lease, Renew, LeaseRetry time.Duration
}

// DefaultWaits are those of production.
func DefaultWaits() Waits {
	return Waits{
		Round: 100 * time.Millisecond, Quiet: 10 * time.Second, Pause: 10 * time.Minute,
		Probe: 200 * time.Millisecond, Freeze: 30 * time.Second, Request: 2 * time.Minute,
		Status: 5 * time.Second, Explain: 30 * time.Second,
		Retry: time.Second, MaxRetry: 30 * time.Second, Check: 15 * time.Second,
		Lease: 15 * time.Second, Renew: 10 * time.Second, LeaseRetry: 2 * time.Second,
	}
}

// Config is what a runner needs.
type Config struct {
	*Clients
	Waits Waits
	// Cluster is the UID of namespace kube-system.
	Cluster types.UID
	// Agent names the program in events and managed fields.
	Agent    string
	Recorder record.EventRecorder
	Watchdog *leaderelection.HealthzAdaptor
	// Parallel is how many objects are deleted at once.
	Parallel int
	// Check returns what refuses a teardown of the cluster. It is called before the start only. Without it every teardown
	// is refused.
	Check func(context.Context, *alive.Alive) ([]teardown.Problem, error)
	// Permitted returns the rights that this process lacks, as rules.
	Permitted func(context.Context) ([]string, error)
	// Commands writes the commands in texts.
	Commands cluster.Commands
	// Shared are handles of volumes of other clusters, APIServer the addresses of our own.
	Shared, APIServer map[string]bool
	// Command: Run returns once the teardown has ended or is stopped.
	Command bool
	// Follow is called with each new state. It must not block.
	Follow func(Progress)
}

func (c *Config) election() componentconfig.LeaderElectionConfiguration {
	return componentconfig.LeaderElectionConfiguration{
		LeaderElect: true, ResourceLock: resourcelock.LeasesResourceLock,
		ResourceName: LeaseName, ResourceNamespace: Namespace,
		LeaseDuration: metav1.Duration{Duration: c.Waits.Lease},
		RenewDeadline: metav1.Duration{Duration: c.Waits.Renew},
		RetryPeriod:   metav1.Duration{Duration: c.Waits.LeaseRetry},
	}
}
