package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	componentconfig "k8s.io/component-base/config"
	componentoptions "k8s.io/component-base/config/options"

	"github.com/exeunt-io/exeunt/internal/program"
	"github.com/exeunt-io/exeunt/internal/program/serving"
)

// options are the flags of the program.
type options struct {
	*program.Options
	serving *serving.Options
	leader  componentconfig.LeaderElectionConfiguration
	workers int
	dryRun  bool
	// detectOthers: the leader finds out whether another garbage collector works.
	detectOthers bool
	// unreadableAfter is how long a foreground deletion waits for kinds that cannot be read.
	unreadableAfter time.Duration
	// orphanUnreadableAfter is how long one with the policy Orphan does; 0 for ever.
	orphanUnreadableAfter time.Duration
	ignored               []string
	// resources are the ignored ones; Complete sets them.
	resources []schema.GroupResource
}

func newOptions() (program.Runner, error) {
	common, err := program.NewOptions(nil)
	if err != nil {
		return nil, err
	}
	common.NoGates = true
	common.Upstream = program.Limits{QPS: 20, Burst: 30}
	return &options{
		Options: common,
		serving: serving.NewOptions("garbage-collector"),
		leader: componentconfig.LeaderElectionConfiguration{
			LeaderElect:       true,
			ResourceLock:      resourcelock.LeasesResourceLock,
			ResourceName:      "garbage-collector",
			ResourceNamespace: metav1.NamespaceSystem,
			LeaseDuration:     metav1.Duration{Duration: 15 * time.Second},
			RenewDeadline:     metav1.Duration{Duration: 10 * time.Second},
			RetryPeriod:       metav1.Duration{Duration: 2 * time.Second},
		},
		workers:         20,
		detectOthers:    true,
		unreadableAfter: 10 * time.Second,
	}, nil
}

// AddFlags registers the flags.
func (o *options) AddFlags(flags *pflag.FlagSet) {
	o.Options.AddFlags(flags)
	o.serving.AddFlags(flags)
	componentoptions.BindLeaderElectionFlags(&o.leader, flags)
	flags.IntVar(&o.workers, "concurrent-gc-syncs", o.workers, "number of objects that are judged at once")
	flags.BoolVar(&o.dryRun, "dry-run", o.dryRun,
		"log what would be deleted and patched, and write nothing but the lease and events")
	flags.BoolVar(&o.detectOthers, "detect-other-collectors", o.detectOthers,
		"find out now and then whether another garbage collector works in the cluster: the leader creates a Lease that only another one deletes, in the namespace of the leader lease; not with --dry-run")
	flags.DurationVar(&o.unreadableAfter, "unreadable-kind-timeout", o.unreadableAfter,
		"how long a foreground deletion waits for unknown dependents of a kind that the API server cannot list")
	flags.DurationVar(&o.orphanUnreadableAfter, "unreadable-kind-orphan-timeout", o.orphanUnreadableAfter,
		"how long a deletion with the policy Orphan waits for such dependents, which may be deleted afterwards, and at least --unreadable-kind-timeout; 0 to wait until the kind can be listed")
	flags.StringSliceVar(&o.ignored, "ignored-resources", o.ignored,
		"comma-separated list of resources, such as leases.coordination.k8s.io, whose objects are neither deleted nor waited for; events always belong to them")
}

// Complete validates and applies the flags.
func (o *options) Complete() error {
	if err := o.check(); err != nil {
		return err
	}
	return o.Options.Complete()
}

func (o *options) check() error {
	if o.workers < 1 {
		return errors.New("--concurrent-gc-syncs must be at least 1")
	}
	if o.unreadableAfter <= 0 {
		return errors.New("--unreadable-kind-timeout must be longer than 0")
	}
	if o.orphanUnreadableAfter < 0 {
		return errors.New("--unreadable-kind-orphan-timeout must not be negative")
	}
	for _, name := range o.ignored {
		resource := schema.ParseGroupResource(name)
		if resource.Resource == "" {
			return fmt.Errorf("--ignored-resources has the entry %q: write RESOURCE.GROUP, or RESOURCE for the core group", name)
		}
		o.resources = append(o.resources, resource)
	}
	if err := o.serving.Complete(o.Kubeconfig); err != nil {
		return err
	}
	return program.CheckElection(o.leader)
}
