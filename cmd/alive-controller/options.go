package main

import (
	"github.com/spf13/pflag"

	"github.com/exeunt-io/exeunt/internal/program"
	"github.com/exeunt-io/exeunt/internal/program/serving"
)

// options are the flags of the program. The Lease has none: every runner of a teardown has to compete for the same one.
type options struct {
	*program.Options
	serving *serving.Options
}

func newOptions() (program.Runner, error) {
	common, err := program.NewOptions(nil)
	if err != nil {
		return nil, err
	}
	common.NoGates = true
	common.Upstream = program.Limits{QPS: 20, Burst: 30}
	return &options{Options: common, serving: serving.NewOptions(agent)}, nil
}

// AddFlags registers the flags.
func (o *options) AddFlags(flags *pflag.FlagSet) {
	o.Options.AddFlags(flags)
	o.serving.AddFlags(flags)
}

// Complete validates and applies the flags.
func (o *options) Complete() error {
	if err := o.serving.Complete(o.Kubeconfig); err != nil {
		return err
	}
	return o.Options.Complete()
}
