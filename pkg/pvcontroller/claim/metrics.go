package claim

import (
	"errors"

	"k8s.io/component-base/metrics"

	"github.com/exeunt-io/exeunt/pkg/binding"
	operations "github.com/exeunt-io/exeunt/pkg/pvcontroller/metrics"
)

// Counters of assignments of the default class to existing claims without class.
var (
	classAssignments = metrics.NewCounter(&metrics.CounterOpts{
		Name:           "retroactive_storageclass_total",
		Help:           "Number of attempts to assign the default class to an existing claim, failures included",
		StabilityLevel: metrics.ALPHA,
	})
	classAssignmentErrors = metrics.NewCounter(&metrics.CounterOpts{
		Name:           "retroactive_storageclass_errors_total",
		Help:           "Number of failed attempts to assign the default class to an existing claim",
		StabilityLevel: metrics.ALPHA,
	})
)

// RegisterMetrics registers the counters of this package.
func RegisterMetrics(register func(metrics.Registerable) error) error {
	return errors.Join(register(classAssignments), register(classAssignmentErrors))
}

// countAssignment counts one attempt to assign the default class.
func countAssignment(err error) {
	classAssignments.Inc()
	if err != nil {
		classAssignmentErrors.Inc()
	}
}

// measure records the begin of provisioning for a claim, and the end once the claim is
// bound, as in kube-controller-manager.
func (c *Controller) measure(o *observation, reason binding.Reason) {
	switch reason {
	case binding.IsBound:
		c.Operations.Succeeded(o.claim.UID)
	case binding.AwaitsProvisioner, binding.AwaitsPlugin:
		c.Operations.Begin(o.claim.UID, o.provisioner, operations.Provision)
	default: // nothing begins or ends
	}
}
