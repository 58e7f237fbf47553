package waiting

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/exeunt-io/exeunt/pkg/blocker"
)

var (
	waitingMetric = prometheus.NewDesc("exeunt_deletion_waiting",
		"Deletions of volumes, claims and snapshots that have waited for 30 s, by the reason.", []string{"blocker"}, nil)
	oldestMetric = prometheus.NewDesc("exeunt_deletion_waiting_oldest_seconds",
		"Age of the oldest deletion that waits, in seconds, by the reason; 0 if none waits.", []string{"blocker"}, nil)
)

var _ prometheus.Collector = (*Tracker)(nil)

// Describe sends the descriptions of the metrics.
func (t *Tracker) Describe(ch chan<- *prometheus.Desc) {
	ch <- waitingMetric
	ch <- oldestMetric
}

// Collect sends the metrics. It counts the deletions that wait, and no other objects.
func (t *Tracker) Collect(ch chan<- prometheus.Metric) {
	for reason, count := range t.count() {
		ch <- prometheus.MustNewConstMetric(waitingMetric, prometheus.GaugeValue, float64(count.deletions), reason.String())
		ch <- prometheus.MustNewConstMetric(oldestMetric, prometheus.GaugeValue, count.oldest.Seconds(), reason.String())
	}
}

// count is the number of deletions and the age of the oldest one.
type count struct {
	deletions int
	oldest    time.Duration
}

func (t *Tracker) count() map[blocker.Reason]count {
	counts := map[blocker.Reason]count{}
	for _, reason := range t.reasons {
		counts[reason] = count{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	for _, entry := range t.tracked {
		if !entry.waits || now.Sub(entry.first) < blocker.EventDelay {
			continue
		}
		sum, since := counts[entry.Reason], entry.Since
		if since.IsZero() {
			since = entry.first
		}
		counts[entry.Reason] = count{sum.deletions + 1, max(sum.oldest, now.Sub(since))}
	}
	return counts
}
