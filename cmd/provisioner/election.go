package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	componentconfig "k8s.io/component-base/config"

	"github.com/exeunt-io/exeunt/internal/program"
)

// unrenewed is how long after its end a lease that is still acted upon is no
// reason yet to have the process restarted.
const unrenewed = 20 * time.Second

// electionOptions say whether one of several processes works, and which lease it
// holds then.
type electionOptions struct {
	enabled   bool
	namespace string
	labels    labelFlag
	// duration is how long the lease is valid; renewal and retry bound the tries
	// to renew it.
	duration, renewal, retry time.Duration
}

func newElectionOptions() electionOptions {
	return electionOptions{labels: labelFlag{}, duration: 15 * time.Second, renewal: 10 * time.Second, retry: 5 * time.Second}
}

func (o *electionOptions) addFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&o.enabled, "leader-election", o.enabled, "work only while holding a lease, so that several replicas can run")
	flags.StringVar(&o.namespace, "leader-election-namespace", o.namespace, "namespace of the lease; without it, that of the pod")
	flags.Var(&o.labels, "leader-election-labels", "labels that the leader puts on the lease, such as key:value,other:value")
	flags.DurationVar(&o.duration, "leader-election-lease-duration", o.duration, "how long a lease is valid that was not renewed")
	flags.DurationVar(&o.renewal, "leader-election-renew-deadline", o.renewal, "how long the leader tries to renew its lease before it gives up; at least 4s shorter than the lease duration, so that its work ends before the lease expires")
	flags.DurationVar(&o.retry, "leader-election-retry-period", o.retry, "time between two tries to get or to renew the lease")
}

func (o *electionOptions) check() error {
	if !o.enabled {
		return nil
	}
	return program.CheckDeadlines("leader-election", o.duration, o.renewal, o.retry)
}

// leaseNamespace is the namespace of all Leases of this program.
func (o *electionOptions) leaseNamespace() string {
	return cmp.Or(o.namespace, podNamespace(), metav1.NamespaceDefault)
}

// lease describes the lease of the driver, which is called as upstream's.
func (o *electionOptions) lease(driver string) program.Election {
	return program.Election{
		LeaderElectionConfiguration: componentconfig.LeaderElectionConfiguration{
			LeaderElect:       o.enabled,
			ResourceLock:      "leases",
			ResourceName:      leaseName(driver),
			ResourceNamespace: o.leaseNamespace(),
			LeaseDuration:     metav1.Duration{Duration: o.duration},
			RenewDeadline:     metav1.Duration{Duration: o.renewal},
			RetryPeriod:       metav1.Duration{Duration: o.retry},
		},
		Labels: o.labels,
	}
}

// notInLeaseNames are the characters that upstream replaces in the name of a lease.
var notInLeaseNames = regexp.MustCompile("[^a-zA-Z0-9-]")

// leaseName is the name that upstream's sidecar derives from the driver's, so that
// a replica of ours and one of upstream's never work at once.
func leaseName(driver string) string {
	name := notInLeaseNames.ReplaceAllString(driver, "-")
	if strings.HasSuffix(name, "-") {
		return name + "X"
	}
	return name
}

// podNamespace is the namespace that this process runs in, "" if nothing says it.
func podNamespace() string {
	if namespace := os.Getenv("POD_NAMESPACE"); namespace != "" {
		return namespace
	}
	mounted, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(mounted))
}

// labelFlag is a flag of key:value pairs, separated by commas.
type labelFlag map[string]string

// String returns the pairs as they were typed, in order of their keys.
func (f labelFlag) String() string {
	pairs := make([]string, 0, len(f))
	for _, key := range slices.Sorted(maps.Keys(f)) {
		pairs = append(pairs, key+":"+f[key])
	}
	return strings.Join(pairs, ",")
}

// Set adds the pairs to those that were given before.
func (f labelFlag) Set(text string) error {
	for pair := range strings.SplitSeq(text, ",") {
		key, value, found := strings.Cut(pair, ":")
		if faults := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); !found || len(faults) > 0 {
			return fmt.Errorf("%q is not a label of the form key:value", pair)
		}
		f[key] = value
	}
	return nil
}

// Type is what the help calls the value.
func (labelFlag) Type() string { return "stringMap" }
