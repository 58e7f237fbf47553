package nodedeployment_test

import (
	"context"
	"testing"
	"time"

	"github.com/exeunt-io/exeunt/pkg/provisioner/nodedeployment"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
)

// --node-deployment-base-delay=0 is allowed: a single node needs no delay before its first attempt. So is
// --node-deployment-max-delay=0.
func TestNodeWithoutCapacityAndDelayIsNotAskedInALoop(t *testing.T) {
	for _, longest := range []time.Duration{0, time.Minute} {
		w := newWorld(t, 0, claim(), class(), func(config *nodedeployment.Config) { config.MaxDelay = longest })
		w.driver.response = &spec.GetCapacityResponse{}
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		w.Run(ctx, 1)
		if calls := w.driver.calls.Load(); calls > 20 {
			t.Errorf("with a longest delay of %v GetCapacity was called %d times within a second", longest, calls)
		}
	}
}
