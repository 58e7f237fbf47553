package garbagecollector

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

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
			Name: "garbagecollector_controller_resources_sync_error_total", Help: "Number of garbage collector resources sync errors"}),
		deleted: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "garbage_collector_deletions_total", Help: "Dependents deleted, by propagation policy."}, []string{"policy"}),
		patched: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "garbage_collector_patches_total", Help: "Patches of owner references and finalizers, by what they remove."}, []string{"verb"}),
		reads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "garbage_collector_barrier_reads_total", Help: "Reads of kinds by barriers: probes of the present version, and lists."}, []string{"request"}),
		barriers: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "garbage_collector_barrier_duration_seconds", Help: "Time until the graph had seen every kind after a deletion.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}}),
	}
}

var (
	waitingMetric = prometheus.NewDesc("garbage_collector_waiting_owners", "Owners whose deletion waits for their dependents, by policy.", []string{"policy"}, nil)
	oldestMetric  = prometheus.NewDesc("garbage_collector_waiting_owners_oldest_seconds", "Age of the oldest of these deletions, in seconds; 0 if none waits.", []string{"policy"}, nil)
	unreadMetric  = prometheus.NewDesc("garbage_collector_unread_kinds", "Kinds that have no first list, or that the last barrier could not read.", nil, nil)
	kindMetric    = prometheus.NewDesc("garbage_collector_unread_kind", "1 for each of these kinds.", []string{"resource"}, nil)
	otherMetric   = prometheus.NewDesc("garbage_collector_other_collector", "1 if the last check found another garbage collector at work, 0 otherwise.", nil, nil)
	checkMetric   = prometheus.NewDesc("garbage_collector_other_collector_check_failed", "1 if the last check for another garbage collector failed, 0 otherwise.", nil, nil)
	nodesMetric   = prometheus.NewDesc("garbage_collector_graph_nodes", "Objects and missing owners in the graph.", nil, nil)
)

// metricsOf collects the metrics about the graph.
type metricsOf struct{ *Collector }

var _ prometheus.Collector = metricsOf{}

// Register registers the metrics.
func (c *Collector) Register(registry prometheus.Registerer) error {
	err := errors.Join(registry.Register(metricsOf{c}), registry.Register(c.metrics.syncErrors), registry.Register(c.metrics.deleted),
		registry.Register(c.metrics.patched), registry.Register(c.metrics.reads), registry.Register(c.metrics.barriers))
	if err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	return nil
}

// Describe sends the descriptions of the metrics about the graph.
func (metricsOf) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{waitingMetric, oldestMetric, unreadMetric, kindMetric, otherMetric, checkMetric, nodesMetric} {
		ch <- desc
	}
}

// Collect sends the metrics about the graph.
func (m metricsOf) Collect(ch chan<- prometheus.Metric) {
	count, oldest := m.progress.counts()
	for policy, owners := range count {
		ch <- prometheus.MustNewConstMetric(waitingMetric, prometheus.GaugeValue, float64(owners), policy)
		ch <- prometheus.MustNewConstMetric(oldestMetric, prometheus.GaugeValue, oldest[policy].Seconds(), policy)
	}
	unread := m.barriers.unreadKinds()
	ch <- prometheus.MustNewConstMetric(unreadMetric, prometheus.GaugeValue, float64(len(unread)))
	for _, resource := range unread {
		ch <- prometheus.MustNewConstMetric(kindMetric, prometheus.GaugeValue, 1, resource)
	}
	ch <- prometheus.MustNewConstMetric(otherMetric, prometheus.GaugeValue, oneIf(m.others.hasFound()))
	ch <- prometheus.MustNewConstMetric(checkMetric, prometheus.GaugeValue, oneIf(m.others.hasCheckFailed()))
	ch <- prometheus.MustNewConstMetric(nodesMetric, prometheus.GaugeValue, float64(m.nodes()))
}

// oneIf returns 1 if the condition holds, else 0.
func oneIf(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}
