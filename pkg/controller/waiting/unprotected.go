package waiting

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

var unprotectedMetric = prometheus.NewDesc("exeunt_unprotected_volumes",
	"Bound volumes with policy Delete without the finalizer that keeps them until their data is deleted: deleted before their claim, they may leave the data behind.", nil, nil)

// Unprotected is the set of volumes without the finalizer that they should have. It is kept
// up to date by the events of volumes, so that the metric costs no scan. It is safe for
// concurrent use. A nil set stays empty.
type Unprotected struct {
	mu      sync.Mutex
	volumes map[types.UID]struct{}
}

var _ prometheus.Collector = (*Unprotected)(nil)

// NewUnprotected returns an empty set.
func NewUnprotected() *Unprotected {
	return &Unprotected{volumes: map[types.UID]struct{}{}}
}

// Set records whether the volume is unprotected.
func (u *Unprotected) Set(volume types.UID, unprotected bool) {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if unprotected {
		u.volumes[volume] = struct{}{}
		return
	}
	delete(u.volumes, volume)
}

func (u *Unprotected) len() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.volumes)
}

// Describe sends the description of the metric.
func (u *Unprotected) Describe(ch chan<- *prometheus.Desc) { ch <- unprotectedMetric }

// Collect sends the metric.
func (u *Unprotected) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.MustNewConstMetric(unprotectedMetric, prometheus.GaugeValue, float64(u.len()))
}
