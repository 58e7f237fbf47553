package provisioner

import (
	"errors"

	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller"

	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/provisioner/backend"
)

// failureOf returns what an error of Provision says of the volume. Interrupted: the
// context of the call ended, so that the provisioner cannot know how the call ended.
func failureOf(state controller.ProvisioningState, err error, interrupted bool) *backend.Failure {
	failure := &backend.Failure{Err: err, Outcome: outcomeOf(state)}
	switch {
	case interrupted:
		failure.Outcome = provision.Unanswered
	case isIgnored(err):
		failure.Outcome, failure.Ignored = provision.NoVolume, true
	case state == controller.ProvisioningReschedule:
		failure.NodeUnfit = true
	}
	return failure
}

// outcomeOf returns what the state of an error says of the volume. A state that is not
// known says nothing.
func outcomeOf(state controller.ProvisioningState) provision.Outcome {
	switch state {
	case controller.ProvisioningFinished, controller.ProvisioningReschedule:
		return provision.NoVolume
	case controller.ProvisioningNoChange:
		return provision.Unchanged
	default:
		return provision.Unanswered
	}
}

// isIgnored reports whether the provisioner leaves the object to another provisioner.
func isIgnored(err error) bool {
	var ignored *controller.IgnoredError
	return errors.As(err, &ignored)
}
