package sandbox

import (
	"context"
	"strings"
)

// teardownLoops are the loops of kube-controller-manager that a teardown meets, without those of volumes.
var teardownLoops = strings.Join([]string{
	"statefulset-controller", "replicaset-controller", "deployment-controller", "job-controller",
	"ephemeral-volume-controller", "garbage-collector-controller", "namespace-controller", "serviceaccount-controller",
}, ",")

// StartTeardownLoops starts kube-controller-manager, beside pv-controller with the loops that a teardown meets.
// Upstream's runs all loops, those of volumes included.
func (c *Cluster) StartTeardownLoops(ctx context.Context, upstream bool) (*Process, error) {
	loops := teardownLoops
	if upstream {
		loops = "*"
	}
	return c.startManager(ctx, loops, "--concurrent-statefulset-syncs=20", "--concurrent-gc-syncs=20")
}
