package metrics

import (
	"context"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// Collector counts volumes and claims while they change: reading the metrics costs the same in a
// cluster of any size.
type Collector struct {
	metrics.BaseStableCollector
	volumes *counter[volumeKind]
	claims  *counter[claimKind]

	total, boundVolumes, unboundVolumes, boundClaims, unboundClaims *metrics.Desc
}

var _ metrics.StableCollector = (*Collector)(nil)

// NewCollector returns a collector that has counted nothing yet; see [Collector.Watch].
func NewCollector() *Collector {
	byClaim := []string{"namespace", "storage_class", "volume_attributes_class"}
	return &Collector{
		volumes: newCounter[volumeKind](), claims: newCounter[claimKind](),
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

// Watch counts the objects of the informers, until the informers end. It returns once every
// cached object is counted.
func (c *Collector) Watch(ctx context.Context, volumes, claims cache.SharedIndexInformer) error {
	return controller.RegisterHandlers(ctx,
		controller.EventHandler{Informer: volumes, Handler: controller.OnChange(c.volumeChanged, c.volumeGone)},
		controller.EventHandler{Informer: claims, Handler: controller.OnChange(c.claimChanged, c.claimGone)},
	)
}

func (c *Collector) volumeChanged(_, volume *v1.PersistentVolume) {
	c.volumes.set(cache.MetaObjectToName(volume), kindOfVolume(volume))
}

func (c *Collector) volumeGone(volume *v1.PersistentVolume) {
	c.volumes.forget(cache.MetaObjectToName(volume))
}

func (c *Collector) claimChanged(_, claim *v1.PersistentVolumeClaim) {
	c.claims.set(cache.MetaObjectToName(claim), kindOfClaim(claim))
}

func (c *Collector) claimGone(claim *v1.PersistentVolumeClaim) {
	c.claims.forget(cache.MetaObjectToName(claim))
}

// DescribeWithStability sends the descriptions of all metrics.
func (c *Collector) DescribeWithStability(ch chan<- *metrics.Desc) {
	for _, desc := range []*metrics.Desc{c.total, c.boundVolumes, c.unboundVolumes, c.boundClaims, c.unboundClaims} {
		ch <- desc
	}
}

// CollectWithStability sends the metrics.
func (c *Collector) CollectWithStability(ch chan<- metrics.Metric) {
	total, volumes := tallyVolumes(c.volumes.byKind())
	claims := tallyClaims(c.claims.byKind())
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

// counter counts objects by kind, as events say. It remembers the kind of each object: the
// event of a deletion may have a newer version than the counted object.
type counter[K comparable] struct {
	mu      sync.Mutex
	objects map[cache.ObjectName]*count[K]
	counts  map[K]*count[K]
}

// count is the number of objects of a kind.
type count[K comparable] struct {
	kind    K
	objects int
}

func newCounter[K comparable]() *counter[K] {
	return &counter[K]{objects: map[cache.ObjectName]*count[K]{}, counts: map[K]*count[K]{}}
}

// set counts a new object, or an object that may have changed its kind.
func (c *counter[K]) set(name cache.ObjectName, kind K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if counted := c.objects[name]; counted != nil && counted.kind == kind {
		return
	}
	c.remove(name)
	now := c.counts[kind]
	if now == nil {
		now = &count[K]{kind: kind}
		c.counts[kind] = now
	}
	now.objects++
	c.objects[name] = now
}

// forget stops counting an object.
func (c *counter[K]) forget(name cache.ObjectName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(name)
}

func (c *counter[K]) remove(name cache.ObjectName) {
	counted := c.objects[name]
	if counted == nil {
		return
	}
	delete(c.objects, name)
	counted.objects--
	if counted.objects == 0 {
		delete(c.counts, counted.kind)
	}
}

// byKind returns how many objects of each kind exist.
func (c *counter[K]) byKind() map[K]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	numbers := make(map[K]int, len(c.counts))
	for kind, counted := range c.counts {
		numbers[kind] = counted.objects
	}
	return numbers
}
