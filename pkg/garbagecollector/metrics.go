package garbagecollector

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	waitingMetric = prometheus.NewDesc("garbage_collector_waiting_owners",
		"Owners whose deletion waits for their dependents, by policy.", []string{"policy"}, nil)
	oldestMetric = prometheus.NewDesc("garbage_collector_waiting_owners_oldest_seconds",
		"Age of the oldest of these deletions, in seconds; 0 if none waits.", []string{"policy"}, nil)
	unreadMetric = prometheus.NewDesc("garbage_collector_unread_kinds",
		"Kinds that have no first list, or that the last barrier could not read.", nil, nil)
	kindMetric = prometheus.NewDesc("garbage_collector_unread_kind",
		"1 for each of these kinds.", []string{"resource"}, nil)
	otherMetric = prometheus.NewDesc("garbage_collector_other_collector",
		"1 if the last check found another garbage collector at work, 0 otherwise.", nil, nil)
	checkMetric = prometheus.NewDesc("garbage_collector_other_collector_check_failed",
		"1 if the last check for another garbage collector failed, 0 otherwise.", nil, nil)
	nodesMetric = prometheus.NewDesc("garbage_collector_graph_nodes",
		"Objects and missing owners in the graph.", nil, nil)
)

// metricsOf collects the metrics about the graph.
type metricsOf struct{ *Collector }

var _ prometheus.Collector = metricsOf{}

// Register registers the metrics.
func (c *Collector) Register(registry prometheus.Registerer) error {
	err := errors.Join(
		registry.Register(metricsOf{c}), registry.Register(c.metrics.syncErrors), registry.Register(c.metrics.deleted),
		registry.Register(c.metrics.patched), registry.Register(c.metrics.reads), registry.Register(c.metrics.barriers))
	if err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	return nil
}

// Describe sends the descriptions of the metrics about the graph.
func (metricsOf) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		waitingMetric, oldestMetric, unreadMetric, kindMetric, otherMetric, checkMetric, nodesMetric,
	} {
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
