package program

import (
	"errors"
	"fmt"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
	componentconfig "k8s.io/component-base/config"
)

// CheckElection validates the flags --leader-elect... of upstream's programs.
func CheckElection(config componentconfig.LeaderElectionConfiguration) error {
	switch {
	case !config.LeaderElect:
		return nil
	case config.ResourceLock != resourcelock.LeasesResourceLock:
		return fmt.Errorf("--leader-elect-resource-lock must be %s", resourcelock.LeasesResourceLock)
	case config.ResourceName == "" || config.ResourceNamespace == "":
		return errors.New("--leader-elect-resource-name and --leader-elect-resource-namespace must not be empty")
	}
	return CheckDeadlines("leader-elect", config.LeaseDuration.Duration, config.RenewDeadline.Duration, config.RetryPeriod.Duration)
}
