package main

import (
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/runner"
)

var (
	phaseMetric = prometheus.NewDesc("exeunt_teardown_phase",
		"Phase of the teardown of the cluster: 1 for the phase that it has, 0 for the others.", []string{"phase"}, nil)
	remainingMetric = prometheus.NewDesc("exeunt_teardown_remaining",
		"What is still to be deleted, by kind, while this process carries out the teardown.", []string{"kind"}, nil)
)

// phases and kinds are the values of the labels.
var (
	phases = []teardown.Phase{teardown.Protected, teardown.Armed, teardown.Preparing, teardown.TearingDown, teardown.Stopped,
		teardown.Complete}
	kinds = []teardown.Kind{teardown.Volume, teardown.Snapshot, teardown.LoadBalancer, teardown.Ingress, teardown.Gateway,
		teardown.Participant}
)

// progress is how far the teardown is, as metrics.
type progress struct {
	mu   sync.Mutex
	last runner.Progress
}

// follow takes the next state.
func (p *progress) follow(next runner.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = next
}

// Describe implements [prometheus.Collector].
func (p *progress) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- phaseMetric
	descriptions <- remainingMetric
}

// Collect implements [prometheus.Collector]. Before Alive was read there is no phase.
func (p *progress) Collect(metrics chan<- prometheus.Metric) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last.Phase == teardown.NoPhase {
		return
	}
	for _, phase := range phases {
		value := 0.0
		if phase == p.last.Phase {
			value = 1
		}
		metrics <- prometheus.MustNewConstMetric(phaseMetric, prometheus.GaugeValue, value, string(phase))
	}
	if !p.last.Leading {
		return
	}
	for _, kind := range kinds {
		metrics <- prometheus.MustNewConstMetric(remainingMetric, prometheus.GaugeValue, float64(p.last.Left[string(kind)]),
			string(kind))
	}
}

func (p *progress) register(registry prometheus.Registerer) error {
	if err := registry.Register(p); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	return nil
}
