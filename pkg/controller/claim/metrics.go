package claim

import (
	"errors"

	"k8s.io/component-base/metrics"
)

// Counters of the classes given to claims that name none, failures included.
var (
	classAssignments = metrics.NewCounter(&metrics.CounterOpts{
		Name:           "retroactive_storageclass_total",
		Help:           "Number of times that a claim was to get the default class after it was made, failures included",
		StabilityLevel: metrics.ALPHA,
	})
	classAssignmentErrors = metrics.NewCounter(&metrics.CounterOpts{
		Name:           "retroactive_storageclass_errors_total",
		Help:           "Number of times that a claim could not be given the default class",
		StabilityLevel: metrics.ALPHA,
	})
)

// RegisterMetrics registers the counters of this reconciler, which count nothing before.
func RegisterMetrics(register func(metrics.Registerable) error) error {
	return errors.Join(register(classAssignments), register(classAssignmentErrors))
}

// countAssignment counts one try to give a claim the default class.
func countAssignment(err error) {
	classAssignments.Inc()
	if err != nil {
		classAssignmentErrors.Inc()
	}
}
