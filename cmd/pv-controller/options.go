package main

import (
	"errors"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	componentconfig "k8s.io/component-base/config"
	componentoptions "k8s.io/component-base/config/options"
	"k8s.io/component-base/metrics"

	"github.com/exeunt-io/exeunt/internal/program"
	"github.com/exeunt-io/exeunt/internal/program/serving"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
)

// options are the flags of the program.
type options struct {
	*program.Options
	serving *serving.Options
	leader  componentconfig.LeaderElectionConfiguration
	// claimWorkers and volumeWorkers are how many objects of a kind are worked on at once.
	claimWorkers, volumeWorkers int
	dynamic                     bool
	// lookAgain is the longest time until an object that waits is looked at though no
	// event came.
	lookAgain time.Duration
	metrics   *metrics.Options
	plugins   pluginOptions
	// set are the in-tree plugins once the flags are complete.
	set *intree.Set
}

func newOptions() (program.Runner, error) {
	common, err := program.NewOptions(nil)
	if err != nil {
		return nil, err
	}
	common.Upstream = program.Limits{QPS: 20, Burst: 30}
	return &options{
		Options: common,
		serving: serving.NewOptions("pv-controller"),
		leader: componentconfig.LeaderElectionConfiguration{
			LeaderElect:       true,
			ResourceLock:      "leases",
			ResourceName:      "pv-controller",
			ResourceNamespace: metav1.NamespaceSystem,
			LeaseDuration:     metav1.Duration{Duration: 15 * time.Second},
			RenewDeadline:     metav1.Duration{Duration: 10 * time.Second},
			RetryPeriod:       metav1.Duration{Duration: 2 * time.Second},
		},
		claimWorkers:  16,
		volumeWorkers: 16,
		dynamic:       true,
		lookAgain:     15 * time.Second,
		metrics:       metrics.NewOptions(),
		plugins:       newPluginOptions(),
	}, nil
}

// AddFlags registers the flags.
func (o *options) AddFlags(flags *pflag.FlagSet) {
	o.Options.AddFlags(flags)
	o.serving.AddFlags(flags)
	componentoptions.BindLeaderElectionFlags(&o.leader, flags)
	flags.IntVar(&o.claimWorkers, "concurrent-claim-syncs", o.claimWorkers, "claims that are worked on at once")
	flags.IntVar(&o.volumeWorkers, "concurrent-volume-syncs", o.volumeWorkers, "volumes that are worked on at once")
	flags.BoolVar(&o.dynamic, "enable-dynamic-provisioning", o.dynamic, "ask provisioners for volumes where none fits")
	flags.StringVar(&o.ContentType, "kube-api-content-type", o.ContentType, "how requests to the API server are encoded: application/vnd.kubernetes.protobuf or application/json")
	flags.DurationVar(&o.lookAgain, "pvclaimbinder-sync-period", o.lookAgain, "longest time until a claim or volume that waits is looked at again though no event came; settled ones are left alone")
	o.plugins.AddFlags(flags)
	addMetricFlags(o.metrics, flags)
	refuse(flags)
}

// Complete checks the flags and has them obeyed.
func (o *options) Complete() error {
	if err := o.check(); err != nil {
		return err
	}
	if err := applyMetrics(o.metrics); err != nil {
		return err
	}
	return o.Options.Complete()
}

func (o *options) check() error {
	if o.claimWorkers < 1 || o.volumeWorkers < 1 {
		return errors.New("--concurrent-claim-syncs and --concurrent-volume-syncs must be at least 1")
	}
	if o.lookAgain <= 0 {
		return errors.New("--pvclaimbinder-sync-period must be longer than 0")
	}
	var err error
	if o.set, err = o.plugins.plugins(); err != nil {
		return err
	}
	if err := o.serving.Complete(o.Kubeconfig); err != nil {
		return err
	}
	return checkLeaderElection(o.leader)
}
