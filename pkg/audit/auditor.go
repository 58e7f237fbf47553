package audit

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/klog/v2"
)

// settle is the time between the two passes of one audit.
const settle = 10 * time.Second

// Metrics is the metric of an [Auditor].
type Metrics struct{ orphans *prometheus.GaugeVec }

// NewMetrics returns a metric that is not registered yet.
func NewMetrics() *Metrics {
	return &Metrics{prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: "exeunt", Name: "orphaned_volumes",
		Help: "Volumes in the storage system that nothing in this cluster refers to, by the last audit; absent if that could not be found out. See exeunt audit.",
	}, []string{"driver_name"})}
}

// Collectors returns the metric for a registry.
func (m *Metrics) Collectors() []prometheus.Collector { return []prometheus.Collector{m.orphans} }

// Auditor counts the orphaned volumes of one driver from time to time, and deletes nothing: the metric
// tells an administrator to run "exeunt audit".
type Auditor struct {
	Driver  Driver
	Cluster *Cluster
	// Interval is the time between two audits.
	Interval time.Duration
	Metrics  *Metrics
}

// Run audits at once and then in intervals, until ctx ends. Afterwards the metric is absent:
// another process leads.
func (a *Auditor) Run(ctx context.Context) {
	defer a.Metrics.orphans.DeleteLabelValues(a.Driver.Name())
	ticker := time.NewTicker(a.Interval)
	defer ticker.Stop()
	for {
		report, err := Run(ctx, Config{Driver: a.Driver, Clusters: []*Cluster{a.Cluster}, Settle: settle})
		if ctx.Err() != nil {
			return
		}
		a.record(ctx, report, err)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// record sets the metric, or removes its value if the number of orphans is unknown.
func (a *Auditor) record(ctx context.Context, report *Report, err error) {
	logger := klog.FromContext(ctx).WithValues("driver", a.Driver.Name())
	switch {
	case err != nil:
		a.Metrics.orphans.DeleteLabelValues(a.Driver.Name())
		logger.Error(err, "Audit of volumes failed")
	case !report.Enumerated || len(report.Incomplete) > 0:
		a.Metrics.orphans.DeleteLabelValues(a.Driver.Name())
		logger.Info("Audit of volumes is incomplete", "missing", report.Incomplete)
	default:
		a.Metrics.orphans.WithLabelValues(a.Driver.Name()).Set(float64(len(report.Orphans)))
		logger.Info("Audited volumes", "orphans", len(report.Orphans), "doubtful", len(report.Doubtful), "ghosts",
			len(report.Ghosts), "shared", len(report.Shared))
	}
}
