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
	// claimWorkers and volumeWorkers are the numbers of workers per kind of object.
	claimWorkers, volumeWorkers int
	// dynamic requests a volume from the provisioner of the class if no existing volume fits.
	dynamic bool
	// resyncPeriod is the maximum time until a waiting object is reconciled without an event.
	resyncPeriod time.Duration
	metrics      *metrics.Options
	plugins      pluginOptions
	// inTree are the plugins that the flags describe; check creates them.
	inTree *intree.Set
}

func newOptions() (program.Runner, error) {
	common, err := program.NewOptions(nil) // no gates but the common ones
	if err != nil {
		return nil, err
	}
	// No limits by default. If a user sets one of the two, the other is that of kube-controller-manager.
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
		resyncPeriod:  15 * time.Second,
		metrics:       metrics.NewOptions(),
		plugins:       newPluginOptions(),
	}, nil
}

// AddFlags registers the flags.
func (o *options) AddFlags(flags *pflag.FlagSet) {
	o.Options.AddFlags(flags)
	o.serving.AddFlags(flags)
	componentoptions.BindLeaderElectionFlags(&o.leader, flags)
	flags.IntVar(&o.claimWorkers, "concurrent-claim-syncs", o.claimWorkers, "number of claims that are reconciled at once")
	flags.IntVar(&o.volumeWorkers, "concurrent-volume-syncs", o.volumeWorkers,
		"number of volumes that are reconciled at once")
	flags.BoolVar(&o.dynamic, "enable-dynamic-provisioning", o.dynamic,
		"request a volume from the provisioner of the class if no existing volume fits")
	flags.StringVar(&o.ContentType, "kube-api-content-type", o.ContentType,
		"content type of requests to the API server: application/vnd.kubernetes.protobuf or application/json")
	flags.DurationVar(&o.resyncPeriod, "pvclaimbinder-sync-period", o.resyncPeriod,
		"maximum time until a waiting claim or volume is reconciled again without an event; other objects are not resynced")
	o.plugins.AddFlags(flags)
	addMetricFlags(o.metrics, flags)
	refuseFlags(flags)
}

// Complete validates and applies the flags.
func (o *options) Complete() error {
	if err := o.check(); err != nil {
		return err
	}
	if err := applyMetrics(o.metrics); err != nil {
		return err
	}
	return o.Options.Complete()
}

// check validates the flags, and fills in what follows from them: plugins, and kubeconfigs of the secure port.
func (o *options) check() error {
	if o.claimWorkers < 1 || o.volumeWorkers < 1 {
		return errors.New("--concurrent-claim-syncs and --concurrent-volume-syncs must be at least 1")
	}
	if o.resyncPeriod <= 0 {
		return errors.New("--pvclaimbinder-sync-period must be longer than 0")
	}
	var err error
	if o.inTree, err = o.plugins.newSet(); err != nil {
		return err
	}
	if err := o.serving.Complete(o.Kubeconfig); err != nil {
		return err
	}
	return program.CheckElection(o.leader)
}
