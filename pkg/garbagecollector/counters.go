package garbagecollector

import "github.com/prometheus/client_golang/prometheus"

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
