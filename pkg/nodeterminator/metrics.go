package nodeterminator

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/termination"
)

var (
	terminationsMetric = prometheus.NewDesc("node_terminator_terminations",
		"Nodes that are being terminated, by phase.", []string{"phase"}, nil)
	overdueMetric = prometheus.NewDesc("node_terminator_overdue_seconds",
		"How long after its deadline the machine of a node still runs, in seconds: the longest of all nodes.", nil, nil)
	invalidMetric = prometheus.NewDesc("node_terminator_invalid_deadlines",
		"Nodes that are not served, because the period of their label or their claim cannot be read.", nil, nil)
	waitingMetric = prometheus.NewDesc("node_terminator_disruptions_waiting",
		"Nodes that wait to be replaced because their claims have drifted or expired, by what they wait for.",
		[]string{"reason"}, nil)
	skewMetric = prometheus.NewDesc("node_terminator_clock_skew_seconds",
		"How far the clock of this process is ahead of the API server, in seconds.", nil, nil)
)

// metrics are those of the controller. Package drain has those of forced deletions.
type metrics struct {
	controller *Controller
	cutShort   *prometheus.CounterVec
	stopDelay  prometheus.Histogram
}

func newMetrics(c *Controller) *metrics {
	return &metrics{controller: c,
		cutShort: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "node_terminator_pods_cut_short_total",
			Help: "Pods that got less than their grace period, by reason."}, []string{"reason"}),
		stopDelay: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "node_terminator_stop_delay_seconds",
			Help:    "Time from the deadline of a node to the first call that stops its machine, in seconds.",
			Buckets: []float64{0.05, 0.1, 0.25, 0.5, 1, 2, 5, 15, 60, 300}}),
	}
}

// Register registers the metrics.
func (c *Controller) Register(registry prometheus.Registerer) error {
	err := errors.Join(registry.Register(c.metrics), registry.Register(c.metrics.cutShort),
		registry.Register(c.metrics.stopDelay))
	if err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	return nil
}

// count counts the pods of a termination that were cut short since the last time.
func (m *metrics) count(t *nodeTermination, o *observation) {
	for _, cut := range o.pods.CutShort {
		if cut.Missing > 0 && !t.counted[cut.UID] {
			t.counted[cut.UID] = true
			m.cutShort.WithLabelValues(cut.Reason).Inc()
		}
	}
}

// Describe sends the descriptions of the metrics that are computed.
func (*metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{terminationsMetric, overdueMetric, invalidMetric, waitingMetric,
		skewMetric} {
		ch <- desc
	}
}

// Collect sends the metrics that are computed.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	counts, longest := m.controller.summary()
	for phase, count := range counts {
		ch <- prometheus.MustNewConstMetric(terminationsMetric, prometheus.GaugeValue, float64(count), string(phase))
	}
	ch <- prometheus.MustNewConstMetric(overdueMetric, prometheus.GaugeValue, float64(longest))
	ch <- prometheus.MustNewConstMetric(invalidMetric, prometheus.GaugeValue, float64(m.controller.invalidDeadlines()))
	for reason, count := range m.controller.disruptions.counts() {
		ch <- prometheus.MustNewConstMetric(waitingMetric, prometheus.GaugeValue, float64(count), string(reason))
	}
	ch <- prometheus.MustNewConstMetric(skewMetric, prometheus.GaugeValue, m.controller.Clock.Skew().Seconds())
}

// invalidDeadlines returns the number of nodes with a label or a claim that is not served.
func (c *Controller) invalidDeadlines() int {
	count := 0
	for _, object := range c.caches.Nodes.GetStore().List() {
		if n, is := object.(*v1.Node); is {
			if _, _, others, err := c.periodOf(n); err != nil && !others {
				count++
			}
		}
	}
	return count
}

// summary is what metrics show of a termination.
type summary struct {
	phase   termination.Phase
	overdue int64
}

// summarize publishes phase and overdue time for the metrics.
func (t *nodeTermination) summarize() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shown = summary{t.report.Phase, t.report.OverdueSeconds}
	switch {
	case t.report.Phase == termination.PhaseCleaning: // the machine is off
		t.shown.overdue = 0
	case t.released: // finalizers of others may keep the Node
		t.shown = summary{}
	}
}

// summary returns the number of terminations in each phase, and the seconds of the longest overdue one.
func (c *Controller) summary() (map[termination.Phase]int, int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := map[termination.Phase]int{termination.PhaseDraining: 0, termination.PhaseDetaching: 0,
		termination.PhaseStopping: 0, termination.PhaseCleaning: 0}
	var longest int64
	for _, t := range c.terminations {
		t.mu.Lock()
		if t.shown.phase != "" {
			counts[t.shown.phase]++
		}
		longest = max(longest, t.shown.overdue)
		t.mu.Unlock()
	}
	return counts, longest
}
