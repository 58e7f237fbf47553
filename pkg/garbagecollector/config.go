package garbagecollector

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
)

// Config configures a collector.
type Config struct {
	// Reads lists and watches metadata, Barriers lists them for barriers. Live reads single
	// objects; it must have no rate limit, and is Reads if nil.
	Reads, Barriers, Live metadata.Interface
	// REST sends the writes, and reads the definitions of kinds. It must have no rate limit.
	REST      rest.Interface
	Discovery discovery.DiscoveryInterface
	Recorder  record.EventRecorder
	Clock     clock.WithTicker
	// Limiter limits the writes, ReadLimiter the live reads; nil for no limit.
	Limiter, ReadLimiter flowcontrol.RateLimiter
	// Throttle delays all requests while the API server is overloaded; nil for never. The transports of
	// the clients must be wrapped by it.
	Throttle *Throttle
	// Detection finds out whether other garbage collectors work in the cluster; nil for no detection.
	Detection *Detection
	// Workers is the number of objects that are judged at once.
	Workers int
	// DryRun logs the writes instead of sending them.
	DryRun bool
	// Ignored are the resources that are not collected, beside events.
	Ignored []schema.GroupResource
	// UnreadableAfter is how long a barrier waits for kinds that cannot be read.
	UnreadableAfter time.Duration
	// OrphanUnreadableAfter is how long a deletion with the policy Orphan waits for such kinds, at least
	// UnreadableAfter; 0 for ever.
	OrphanUnreadableAfter time.Duration
}

// Detection is how the leader finds out that another garbage collector works in the same cluster: it creates
// a Lease whose owner never existed, the test Lease, and leaves it alone. Only another collector deletes it.
type Detection struct {
	// Client creates and deletes the test Leases.
	Client coordinationclient.LeaseInterface
	// Namespace is that of the client. LeaderLease is the name of the leader lease in this namespace: events
	// are about this Lease.
	Namespace, LeaderLease string
}
