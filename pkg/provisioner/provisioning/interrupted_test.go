package provisioning

import (
	"context"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller/metrics"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/provisioner/backend"
)

// An update of the program, or the end of its leadership, interrupts calls: the driver has not failed.
func TestInterruptedCallIsNoFailureOfTheDriver(t *testing.T) {
	c, events := newObserver(t), record.NewFakeRecorder(10)
	c.Reporter, c.Deletion, c.Metrics = controller.NewReporter(events), &discarding{}, metrics.New("interrupted")
	interrupted := &backend.Failure{Err: context.Canceled, Outcome: provision.Unanswered}
	c.Backend = &directories{next: []*backend.Failure{interrupted}, created: map[string]bool{}}
	o := observed(claimRecord{})
	o.plan = &plan{request: directory{o.name}, volume: &v1.PersistentVolume{}}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := c.create(ctx, o, provision.State{Want: provision.Wanted, Journaled: true}); err != nil {
		t.Error(err)
	}
	select {
	case event := <-events.Events:
		t.Errorf("event %q", event)
	default:
	}
	if failed := testutil.CollectAndCount(c.Metrics.PersistentVolumeClaimProvisionFailedTotal); failed != 0 {
		t.Errorf("%d failures are counted", failed)
	}
}
