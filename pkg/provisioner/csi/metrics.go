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

// Metrics counts the calls of a driver. The metrics endpoint starts before the driver's
// first response, but the labels depend on the driver: for a driver that replaces an in-tree
// plugin, upstream's library labels the calls for migrated volumes.
type Metrics struct {
	current atomic.Pointer[metrics.CSIMetricsManager]
	others  prometheus.Gatherers
}

var _ metrics.CSIMetricsManager = &Metrics{}

// NewMetrics returns metrics without a driver name; see SetDriverName.
func NewMetrics() *Metrics {
	m := &Metrics{}
	m.reset("")
	return m
}

// reset starts counting from zero.
func (m *Metrics) reset(driver string, options ...metrics.MetricsManagerOption) {
	fresh := metrics.NewCSIMetricsManagerWithOptions(driver, append(options, metrics.WithProcessStartTime(false))...)
	m.current.Store(&fresh)
}

// labelMigrated adds the label for migrated volumes. The counts so far, of the calls that
// read the driver's name, are dropped.
func (m *Metrics) labelMigrated(driver string) {
	m.reset(driver, metrics.WithMigration())
}

// Migrated returns a context whose calls are counted as calls for a migrated volume.
func Migrated(ctx context.Context) context.Context {
	return context.WithValue(ctx, connection.AdditionalInfoKey, connection.AdditionalInfo{Migrated: "true"})
}

func (m *Metrics) manager() metrics.CSIMetricsManager { return *m.current.Load() }

// GetRegistry returns the registry of the call metrics.
func (m *Metrics) GetRegistry() componentmetrics.KubeRegistry { return m.manager().GetRegistry() }

// RecordMetrics counts a call.
func (m *Metrics) RecordMetrics(method string, err error, took time.Duration) {
	m.manager().RecordMetrics(method, err, took)
}

// WithLabelValues returns the metrics for calls with the labels.
func (m *Metrics) WithLabelValues(labels map[string]string) (metrics.CSIMetricsManager, error) {
	return m.manager().WithLabelValues(labels)
}

// HaveAdditionalLabel reports whether the metrics have the label.
func (m *Metrics) HaveAdditionalLabel(name string) bool {
	return m.manager().HaveAdditionalLabel(name)
}

// SetDriverName sets the driver's name for the following calls.
func (m *Metrics) SetDriverName(name string) { m.manager().SetDriverName(name) }

// WithAdditionalRegistry adds further metrics to the endpoint.
func (m *Metrics) WithAdditionalRegistry(registry prometheus.Gatherer) metrics.CSIMetricsManager {
	m.others = append(m.others, registry)
	return m
}

// RegisterToServer serves the metrics at the path.
func (m *Metrics) RegisterToServer(server metrics.Server, path string) {
	calls := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return m.GetRegistry().Gather() })
	all := append(prometheus.Gatherers{calls}, m.others...)
	server.Handle(path, componentmetrics.HandlerFor(all,
		componentmetrics.HandlerOpts{ErrorHandling: componentmetrics.ContinueOnError}))
}

// RegisterPprofToServer serves profiles of the process.
func (m *Metrics) RegisterPprofToServer(server metrics.Server) {
	m.manager().RegisterPprofToServer(server)
}
