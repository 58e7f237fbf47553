package metrics

import (
	"k8s.io/component-base/metrics"
)

// Lister returns the objects of one kind, such as the store of an informer.
type Lister interface {
	List() []any
}

// Collector counts volumes and claims when metrics are read.
type Collector struct {
	metrics.BaseStableCollector
	volumes, claims Lister

	total, boundVolumes, unboundVolumes, boundClaims, unboundClaims *metrics.Desc
}

var _ metrics.StableCollector = (*Collector)(nil)

// NewCollector returns a collector that counts the objects of the listers.
func NewCollector(volumes, claims Lister) *Collector {
	byClaim := []string{"namespace", "storage_class", "volume_attributes_class"}
	return &Collector{
		volumes: volumes, claims: claims,
		total:          describe("total_pv_count", "Number of volumes", "plugin_name", "volume_mode"),
		boundVolumes:   describe("bound_pv_count", "Number of volumes that are bound", "storage_class"),
		unboundVolumes: describe("unbound_pv_count", "Number of volumes that are not bound", "storage_class"),
		boundClaims:    describe("bound_pvc_count", "Number of claims that are bound", byClaim...),
		unboundClaims:  describe("unbound_pvc_count", "Number of claims that are not bound", byClaim...),
	}
}

func describe(name, help string, labels ...string) *metrics.Desc {
	return metrics.NewDesc(metrics.BuildFQName("", "pv_collector", name), help, labels, nil, metrics.ALPHA, "")
}

// DescribeWithStability sends the descriptions of all metrics.
func (c *Collector) DescribeWithStability(ch chan<- *metrics.Desc) {
	for _, desc := range []*metrics.Desc{c.total, c.boundVolumes, c.unboundVolumes, c.boundClaims, c.unboundClaims} {
		ch <- desc
	}
}

// CollectWithStability counts the objects and sends the metrics.
func (c *Collector) CollectWithStability(ch chan<- metrics.Metric) {
	total, volumes := countVolumes(c.volumes.List())
	claims := countClaims(c.claims.List())
	send(ch, c.total, total)
	send(ch, c.boundVolumes, volumes.bound)
	send(ch, c.unboundVolumes, volumes.unbound)
	send(ch, c.boundClaims, claims.bound)
	send(ch, c.unboundClaims, claims.unbound)
}

func send[L labels](ch chan<- metrics.Metric, desc *metrics.Desc, counts map[L]int) {
	for labels, count := range counts {
		ch <- metrics.NewLazyConstMetric(desc, metrics.GaugeValue, float64(count), labels.values()...)
	}
}
