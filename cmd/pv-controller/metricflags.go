package main

import (
	"errors"

	"github.com/spf13/pflag"
	"k8s.io/component-base/metrics"
)

// addMetricFlags registers the flags of component-base for metrics, except
// --show-hidden-metrics-for-version: no metric of this program was ever hidden.
func addMetricFlags(options *metrics.Options, flags *pflag.FlagSet) {
	all := pflag.NewFlagSet("metrics", pflag.ContinueOnError)
	options.AddFlags(all)
	all.VisitAll(func(flag *pflag.Flag) {
		if flag.Name != "show-hidden-metrics-for-version" {
			flags.AddFlag(flag)
		}
	})
}

// applyMetrics validates and applies the flags.
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
