package main

import (
	"errors"
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/exeunt-io/exeunt/internal/program"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/provisioner/provisioning"
)

// options are the flags of the program.
type options struct {
	*program.Options
	// csiAddress is the socket of the driver, timeout the deadline of one call, driverWait
	// the longest time until the first answer.
	csiAddress          string
	timeout, driverWait time.Duration
	workers             int
	// retryStart and retryMax are the bounds of the backoff of one object.
	retryStart, retryMax time.Duration

	volumes   provisioningOptions
	serving   servingOptions
	election  electionOptions
	cloning   cloningOptions
	snapshots snapshotOptions
	capacity  capacityOptions
	node      nodeOptions
	journal   journalOptions
	audit     auditOptions
}

// topic is a group of flags.
type topic interface {
	addFlags(flags *pflag.FlagSet)
	// check returns an error that names the invalid flag.
	check() error
}

func (o *options) topics() []topic {
	return []topic{&o.volumes, &o.serving, &o.election, &o.cloning, &o.snapshots, &o.capacity, &o.node, &o.journal,
		&o.audit}
}

func newOptions() (program.Runner, error) {
	common, err := program.NewOptions(gates())
	if err != nil {
		return nil, err
	}
	common.Upstream = program.Limits{QPS: 5, Burst: 10}
	return &options{
		Options:    common,
		csiAddress: "/run/csi/socket",
		timeout:    10 * time.Second,
		driverWait: 10 * time.Minute,
		workers:    100,
		retryStart: time.Second,
		retryMax:   5 * time.Minute,
		volumes:    newProvisioningOptions(),
		serving:    servingOptions{metricsPath: "/metrics"},
		election:   newElectionOptions(),
		cloning:    cloningOptions{workers: 1},
		snapshots:  snapshotOptions{interval: 5 * time.Minute},
		capacity:   capacityOptions{interval: time.Minute, ownerLevel: 1, workers: 1, qps: 1, burst: 5},
		node:       nodeOptions{immediate: true, baseDelay: 20 * time.Second, maxDelay: time.Minute},
		journal:    journalOptions{unresolvedAfter: provisioning.DefaultTimeouts.Unresolved},
	}, nil
}

// AddFlags registers the flags.
func (o *options) AddFlags(flags *pflag.FlagSet) {
	o.Options.AddFlags(flags)
	flags.StringVar(&o.csiAddress, "csi-address", o.csiAddress, "path of the CSI driver's socket")
	flags.DurationVar(&o.timeout, "timeout", o.timeout, "deadline of one call to the driver")
	flags.DurationVar(&o.driverWait, "driver-wait", o.driverWait,
		"longest time to wait for the driver's first answer; 0 waits for ever")
	flags.IntVar(&o.workers, "worker-threads", o.workers,
		"number of workers that create volumes, and number of workers that delete volumes")
	flags.DurationVar(&o.retryStart, "retry-interval-start", o.retryStart,
		"initial backoff of a failed claim or volume; doubles with each failure, up to --retry-interval-max")
	flags.DurationVar(&o.retryMax, "retry-interval-max", o.retryMax, "maximum backoff of a failed claim or volume")
	addAutomaxprocs(flags)
	for _, topic := range o.topics() {
		topic.addFlags(flags)
	}
}

// Complete checks the flags.
func (o *options) Complete() error {
	if o.Kubeconfig == "" && o.Master == "" {
		o.Kubeconfig = os.Getenv("KUBECONFIG")
	}
	switch {
	case o.workers < 1:
		return errors.New("--worker-threads must be at least 1")
	case o.timeout <= 0:
		return errors.New("--timeout must be longer than 0")
	case o.driverWait < 0:
		return errors.New("--driver-wait must not be negative")
	case o.retryStart <= 0 || o.retryMax <= 0:
		return errors.New("--retry-interval-start and --retry-interval-max must be longer than 0")
	case o.node.enabled && o.audit.interval > 0:
		return errors.New("--audit-interval and --node-deployment exclude each other: the driver of one node does not list the volumes of other nodes")
	}
	for _, topic := range o.topics() {
		if err := topic.check(); err != nil {
			return err
		}
	}
	if err := o.Options.Complete(); err != nil {
		return err
	}
	return o.checkGates()
}

func (o *options) backoff() controller.Backoff {
	return controller.Backoff{Initial: o.retryStart, Max: o.retryMax}
}
