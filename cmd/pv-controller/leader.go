package main

import (
	"errors"
	"fmt"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
	componentconfig "k8s.io/component-base/config"

	"github.com/exeunt-io/exeunt/internal/program"
)

// checkLeaderElection validates the flags of leader election.
func checkLeaderElection(config componentconfig.LeaderElectionConfiguration) error {
	switch {
	case !config.LeaderElect:
		return nil
	case config.ResourceLock != resourcelock.LeasesResourceLock:
		return fmt.Errorf("--leader-elect-resource-lock must be %s", resourcelock.LeasesResourceLock)
	case config.ResourceName == "" || config.ResourceNamespace == "":
		return errors.New("--leader-elect-resource-name and --leader-elect-resource-namespace must not be empty")
	}
	return program.CheckDeadlines("leader-elect", config.LeaseDuration.Duration, config.RenewDeadline.Duration, config.RetryPeriod.Duration)
}
