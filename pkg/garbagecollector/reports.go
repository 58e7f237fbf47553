package garbagecollector

import (
	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

const (
	// maxEvents bounds the events of one tick: an event is a write.
	maxEvents = 25
	// maxNames bounds the names in one event.
	maxNames = 5
)

// EventLimits are those of the recorder of a collector. By default client-go leaves out most events about one object
// after the first 25.
var EventLimits = record.CorrelatorOptions{QPS: 1. / 30}

// referenceTo returns the reference to the object for events.
func referenceTo(o graph.Object) *v1.ObjectReference {
	return &v1.ObjectReference{
		APIVersion: o.Kind.GroupVersion().String(), Kind: o.Kind.Kind, Namespace: o.Namespace, Name: o.Name, UID: o.UID,
		ResourceVersion: o.Version,
	}
}

// counters are the metrics that count.
type counters struct {
	syncErrors       prometheus.Counter
	deleted, patched *prometheus.CounterVec
	reads            *prometheus.CounterVec
	barriers         prometheus.Histogram
}

func newCounters() *counters {
	return &counters{
		syncErrors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "garbagecollector_controller_resources_sync_error_total",
			Help: "Number of garbage collector resources sync errors"}),
		deleted: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "garbage_collector_deletions_total", Help: "Dependents deleted, by propagation policy."}, []string{"policy"}),
		patched: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "garbage_collector_patches_total",
			Help: "Patches of owner references and finalizers, by what they remove."}, []string{"verb"}),
		reads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "garbage_collector_barrier_reads_total",
			Help: "Reads of kinds by barriers: probes of the present version, and lists."}, []string{"request"}),
		barriers: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "garbage_collector_barrier_duration_seconds",
			Help:    "Time until the graph had seen every kind after a deletion.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}}),
	}
}
