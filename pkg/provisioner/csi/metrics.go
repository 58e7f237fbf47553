package csi

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/kubernetes-csi/csi-lib-utils/connection"
	"github.com/kubernetes-csi/csi-lib-utils/metrics"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	componentmetrics "k8s.io/component-base/metrics"
)

// Metrics counts the calls to a driver. It is served before the driver has answered,
// and it is only then that its labels are known: upstream's library counts the calls
// about migrated volumes apart, for drivers that an in-tree plugin was migrated to.
type Metrics struct {
	current atomic.Pointer[metrics.CSIMetricsManager]
	others  prometheus.Gatherers
}

var _ metrics.CSIMetricsManager = &Metrics{}

// NewMetrics counts the calls to a driver that is not known yet.
func NewMetrics() *Metrics {
	m := &Metrics{}
	m.begin("")
	return m
}

// begin counts anew.
func (m *Metrics) begin(driver string, options ...metrics.MetricsManagerOption) {
	fresh := metrics.NewCSIMetricsManagerWithOptions(driver, append(options, metrics.WithProcessStartTime(false))...)
	m.current.Store(&fresh)
}

// tellMigrated begins anew, with the calls about migrated volumes told apart. What was
// counted before, which is how the driver was asked its name, is dropped.
func (m *Metrics) tellMigrated(driver string) {
	m.begin(driver, metrics.WithMigration())
}

// Migrated marks the calls in the context as those about a volume of an in-tree plugin.
func Migrated(ctx context.Context) context.Context {
	return context.WithValue(ctx, connection.AdditionalInfoKey, connection.AdditionalInfo{Migrated: "true"})
}

func (m *Metrics) manager() metrics.CSIMetricsManager { return *m.current.Load() }

// GetRegistry returns the registry of the calls.
func (m *Metrics) GetRegistry() componentmetrics.KubeRegistry { return m.manager().GetRegistry() }

// RecordMetrics counts a call.
func (m *Metrics) RecordMetrics(method string, err error, took time.Duration) {
	m.manager().RecordMetrics(method, err, took)
}

// WithLabelValues returns what counts calls that have these labels.
func (m *Metrics) WithLabelValues(labels map[string]string) (metrics.CSIMetricsManager, error) {
	return m.manager().WithLabelValues(labels)
}

// HaveAdditionalLabel says whether calls have the label.
func (m *Metrics) HaveAdditionalLabel(name string) bool {
	return m.manager().HaveAdditionalLabel(name)
}

// SetDriverName names the driver that is called from now on.
func (m *Metrics) SetDriverName(name string) { m.manager().SetDriverName(name) }

// WithAdditionalRegistry has further metrics served.
func (m *Metrics) WithAdditionalRegistry(registry prometheus.Gatherer) metrics.CSIMetricsManager {
	m.others = append(m.others, registry)
	return m
}

// RegisterToServer serves the metrics at the path.
func (m *Metrics) RegisterToServer(server metrics.Server, path string) {
	calls := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return m.GetRegistry().Gather() })
	all := append(prometheus.Gatherers{calls}, m.others...)
	server.Handle(path, componentmetrics.HandlerFor(all, componentmetrics.HandlerOpts{ErrorHandling: componentmetrics.ContinueOnError}))
}

// RegisterPprofToServer serves profiles.
func (m *Metrics) RegisterPprofToServer(server metrics.Server) {
	m.manager().RegisterPprofToServer(server)
}
