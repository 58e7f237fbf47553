package engine

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller/metrics"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/controller/waiting"
)

// blockers are the reasons for which a provisioner lets deletions wait.
var blockers = []blocker.Reason{
	blocker.VolumeAttached, blocker.DriverDeletes, blocker.DriverRefuses, blocker.SecretMissing, blocker.HandleShared,
	blocker.CloneRunning, blocker.SnapshotRunning, blocker.JournalEntry,
}

// Tracked has the deletions that wait and the volumes without the finalizer that they
// should have.
type Tracked struct {
	Waiting     *waiting.Tracker
	Unprotected *waiting.Unprotected
}

// NewTracked returns what a process tracks. No events are sent before Recorder is called.
func NewTracked() Tracked {
	return Tracked{waiting.New(clock.RealClock{}, blockers...), waiting.NewUnprotected()}
}

// Recorder returns the recorder of [controller.Recorder], which also sends the events about
// deletions that wait.
func (t Tracked) Recorder(ctx context.Context, client kubernetes.Interface,
	component string) (record.EventRecorder, func()) {
	sink := waiting.NewSink(client, clock.RealClock{})
	recorder, stop := controller.RecorderTo(ctx, sink, component)
	t.Waiting.SendTo(recorder, sink.Refuses)
	return recorder, stop
}

// Collectors returns the metrics for a registry.
func (t Tracked) Collectors() []prometheus.Collector {
	return []prometheus.Collector{t.Waiting, t.Unprotected}
}

// Collectors returns the metrics of claims and volumes for a registry.
func Collectors(counts metrics.Metrics) []prometheus.Collector {
	return []prometheus.Collector{
		counts.PersistentVolumeClaimProvisionTotal,
		counts.PersistentVolumeClaimProvisionFailedTotal,
		counts.PersistentVolumeClaimProvisionDurationSeconds,
		counts.PersistentVolumeDeleteTotal,
		counts.PersistentVolumeDeleteFailedTotal,
		counts.PersistentVolumeDeleteDurationSeconds,
	}
}
