package journalstore

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

// Metrics are the metrics of the journal.
type Metrics struct {
	commits, bytes prometheus.Counter
	// open and unresolved are the numbers of entries; oldestUnresolved is a time.
	open, unresolved, oldestUnresolved prometheus.Gauge
	// byState has both numbers under one name, by driver and state, for a dashboard of all drivers.
	byState *prometheus.GaugeVec
	// Bypassed counts volumes created without the journal, by reason.
	Bypassed *prometheus.CounterVec
}

// NewMetrics returns metrics that are not registered yet.
func NewMetrics() *Metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "exeunt", Subsystem: "provisioning_journal",
			Name: name, Help: help})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "exeunt", Subsystem: "provisioning_journal", Name: name,
			Help: help})
	}
	m := &Metrics{
		commits:    counter("commits_total", "Writes of the journal's Leases."),
		bytes:      counter("commit_bytes_total", "Size of the entries in all writes, in bytes."),
		open:       gauge("entries", "CreateVolume calls whose outcome is not recorded yet."),
		unresolved: gauge("unresolved_entries", "Entries that only an administrator can end: see exeunt journal list."),
		oldestUnresolved: gauge("unresolved_oldest_timestamp_seconds",
			"When the oldest unresolved entry became unresolved, in seconds since 1970; 0 if there is none."),
		byState: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: "exeunt", Name: "journal_entries",
			Help: "Entries of the provisioning journal by driver and state: open or unresolved.",
		}, []string{"driver_name", "state"}),
		Bypassed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "exeunt", Subsystem: "provisioning_journal", Name: "bypassed_total",
			Help: "Volumes created without a journal entry, by reason: TooLarge or Forbidden.",
		}, []string{"reason"}),
	}
	for _, reason := range []string{"TooLarge", "Forbidden"} { // alerts compare with the count before the first volume
		m.Bypassed.WithLabelValues(reason)
	}
	return m
}

// Collectors returns the metrics for a registry.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.commits, m.bytes, m.open, m.unresolved, m.oldestUnresolved, m.byState, m.Bypassed}
}

// countCommit counts one write of a Lease.
func (m *Metrics) countCommit(entries map[types.UID]string) {
	size := 0
	for _, text := range entries {
		size += len(text)
	}
	m.commits.Inc()
	m.bytes.Add(float64(size))
}

// updateGauges updates the gauges. The caller holds the lock.
func (s *Store) updateGauges() {
	open := float64(len(s.leaseOf)) // one entry per claim
	count, oldest := 0, time.Time{}
	for _, lease := range s.unresolved {
		for _, entry := range lease.entries {
			count++
			if entry.Unresolved == nil { // edited by hand: it has no time
				continue
			}
			if since := time.Unix(entry.Unresolved.Since, 0); oldest.IsZero() || since.Before(oldest) {
				oldest = since
			}
		}
	}
	s.Metrics.open.Set(open)
	s.Metrics.unresolved.Set(float64(count))
	s.Metrics.byState.WithLabelValues(s.Journal.Driver, "open").Set(open)
	s.Metrics.byState.WithLabelValues(s.Journal.Driver, "unresolved").Set(float64(count))
	s.Metrics.oldestUnresolved.Set(0)
	if !oldest.IsZero() {
		s.Metrics.oldestUnresolved.Set(float64(oldest.Unix()))
	}
}
