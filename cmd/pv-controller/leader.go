package main

import (
	"errors"
	"fmt"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	componentconfig "k8s.io/component-base/config"
)

// checkLeaderElection says what is wrong with the flags of leader election.
func checkLeaderElection(config componentconfig.LeaderElectionConfiguration) error {
	lease, renew, retry := config.LeaseDuration.Duration, config.RenewDeadline.Duration, config.RetryPeriod.Duration
	switch {
	case !config.LeaderElect:
		return nil
	case retry <= 0 || lease <= renew:
		return errors.New("--leader-elect-lease-duration must be longer than --leader-elect-renew-deadline, and all durations longer than 0")
	case float64(renew) <= leaderelection.JitterFactor*float64(retry):
		return fmt.Errorf("--leader-elect-renew-deadline must be longer than %v times --leader-elect-retry-period", leaderelection.JitterFactor)
	case config.ResourceLock != resourcelock.LeasesResourceLock:
		return fmt.Errorf("--leader-elect-resource-lock must be %s", resourcelock.LeasesResourceLock)
	case config.ResourceName == "" || config.ResourceNamespace == "":
		return errors.New("--leader-elect-resource-name and --leader-elect-resource-namespace must not be empty")
	}
	return nil
}
