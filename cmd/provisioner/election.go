package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	componentconfig "k8s.io/component-base/config"

	"github.com/exeunt-io/exeunt/internal/program"
	"github.com/exeunt-io/exeunt/pkg/controller/leader"
	"github.com/exeunt-io/exeunt/pkg/provisioner/identity"
)

// unrenewed is how long the health check tolerates a leader with an expired lease.
const unrenewed = 20 * time.Second

// electionOptions are the flags of leader election.
type electionOptions struct {
	enabled   bool
	namespace string
	labels    labelFlag
	// duration is how long the lease is valid, renewal the deadline for renewing the
	// lease, retry the time between two attempts.
	duration, renewal, retry time.Duration
}

func newElectionOptions() electionOptions {
	return electionOptions{labels: labelFlag{}, duration: 15 * time.Second, renewal: 10 * time.Second,
		retry: 5 * time.Second}
}

func (o *electionOptions) addFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&o.enabled, "leader-election", o.enabled,
		"run the controllers only while this process holds the leader lease; for several replicas")
	flags.StringVar(&o.namespace, "leader-election-namespace", o.namespace,
		"namespace of the leader lease; default: the namespace of the pod")
	flags.Var(&o.labels, "leader-election-labels", "labels of the leader lease, as key:value,other:value")
	flags.DurationVar(&o.duration, "leader-election-lease-duration", o.duration,
		"how long the leader lease is valid after its last renewal")
	flags.DurationVar(&o.renewal, "leader-election-renew-deadline", o.renewal,
		"how long the leader tries to renew its lease before it stops; at least 4s shorter than the lease duration, so that the work ends before the lease expires")
	flags.DurationVar(&o.retry, "leader-election-retry-period", o.retry,
		"time between two attempts to acquire or renew the lease")
}

func (o *electionOptions) check() error {
	if !o.enabled {
		return nil
	}
	return program.CheckDeadlines("leader-election", o.duration, o.renewal, o.retry)
}

// lease returns the leader lease of the driver, under upstream's name.
func (o *electionOptions) lease(driver string) leader.Election {
	return leader.Election{
		LeaderElectionConfiguration: componentconfig.LeaderElectionConfiguration{
			LeaderElect:       o.enabled,
			ResourceLock:      "leases",
			ResourceName:      identity.LeaseName(driver),
			ResourceNamespace: identity.LeaseNamespace(o.namespace),
			LeaseDuration:     metav1.Duration{Duration: o.duration},
			RenewDeadline:     metav1.Duration{Duration: o.renewal},
			RetryPeriod:       metav1.Duration{Duration: o.retry},
		},
		Labels: o.labels,
	}
}

// labelFlag is a flag of key:value pairs, separated by commas.
type labelFlag map[string]string

// String returns the pairs, sorted by key.
func (f labelFlag) String() string {
	pairs := make([]string, 0, len(f))
	for _, key := range slices.Sorted(maps.Keys(f)) {
		pairs = append(pairs, key+":"+f[key])
	}
	return strings.Join(pairs, ",")
}

// Set adds the pairs.
func (f labelFlag) Set(text string) error {
	for pair := range strings.SplitSeq(text, ",") {
		key, value, found := strings.Cut(pair, ":")
		if faults := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); !found ||
			len(faults) > 0 {
			return fmt.Errorf("%q is not a label of the form key:value", pair)
		}
		f[key] = value
	}
	return nil
}

// Type is the name of the type in --help.
func (labelFlag) Type() string { return "stringMap" }
