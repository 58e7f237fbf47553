package program

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	componentconfig "k8s.io/component-base/config"

	"github.com/exeunt-io/exeunt/pkg/controller/leader"
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
	return CheckDeadlines("leader-elect", config.LeaseDuration.Duration, config.RenewDeadline.Duration,
		config.RetryPeriod.Duration)
}

// CheckDeadlines returns an error if the durations leave no time to retry a renewal, or to
// end all work before the lease expires. The flags' names begin with the prefix.
func CheckDeadlines(prefix string, lease, renewal, retry time.Duration) error {
	switch {
	case retry <= 0 || renewal <= time.Duration(leaderelection.JitterFactor*float64(retry)):
		return fmt.Errorf("--%[1]s-renew-deadline must be longer than %[2]v times --%[1]s-retry-period, which must be longer than 0", prefix, leaderelection.JitterFactor)
	case lease.Truncate(time.Second) < renewal+leader.StopReserve:
		return fmt.Errorf("--%[1]s-lease-duration, in whole seconds, must be at least %[2]v longer than --%[1]s-renew-deadline: a leader that cannot renew its lease needs that time to end its work before another may lead", prefix, leader.StopReserve)
	}
	return nil
}
