package main

import (
	"errors"

	"github.com/spf13/pflag"
	"k8s.io/component-base/metrics"
)

// addMetricFlags registers the flags that shape the metrics. No metric of this
// program was ever hidden, so that the flag that shows those is not among them.
func addMetricFlags(options *metrics.Options, flags *pflag.FlagSet) {
	all := pflag.NewFlagSet("metrics", pflag.ContinueOnError)
	options.AddFlags(all)
	all.VisitAll(func(flag *pflag.Flag) {
		if flag.Name != "show-hidden-metrics-for-version" {
			flags.AddFlag(flag)
		}
	})
}

// applyMetrics checks the flags and has them obeyed.
func applyMetrics(options *metrics.Options) error {
	if err := errors.Join(options.Validate()...); err != nil {
		return err
	}
	metrics.SetDisabledMetrics(options.DisabledMetrics)
	if len(options.AllowListMapping) > 0 {
		metrics.SetLabelAllowList(options.AllowListMapping)
	} else if options.AllowListMappingManifest != "" {
		metrics.SetLabelAllowListFromManifest(options.AllowListMappingManifest)
	}
	return nil
}
