package capacity

import (
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/component-base/metrics"

	"github.com/exeunt-io/exeunt/pkg/capacity"
)

// The names and labels of the metrics are those of csi-provisioner.
var (
	goalDesc = metrics.NewDesc("csistoragecapacities_desired_goal",
		"Number of CSIStorageCapacity objects that should exist.", nil, nil, metrics.ALPHA, "")
	currentDesc = metrics.NewDesc("csistoragecapacities_desired_current",
		"Number of CSIStorageCapacity objects that should exist and do exist.", nil, nil, metrics.ALPHA, "")
	obsoleteDesc = metrics.NewDesc("csistoragecapacities_obsolete",
		"Number of CSIStorageCapacity objects that exist and will be deleted.", nil, nil, metrics.ALPHA, "")
)

// Collector counts the CSIStorageCapacity objects of a controller at each scrape.
type Collector struct {
	metrics.BaseStableCollector
	controller *Controller
}

// NewCollector returns the collector of the controller.
func NewCollector(controller *Controller) *Collector {
	return &Collector{controller: controller}
}

// DescribeWithStability sends the descriptions of the metrics.
func (c *Collector) DescribeWithStability(descriptions chan<- *metrics.Desc) {
	descriptions <- goalDesc
	descriptions <- currentDesc
	descriptions <- obsoleteDesc
}

// CollectWithStability sends the current counts.
func (c *Collector) CollectWithStability(values chan<- metrics.Metric) {
	goal, current, obsolete := c.controller.count()
	values <- metrics.NewLazyConstMetric(goalDesc, metrics.GaugeValue, float64(goal))
	values <- metrics.NewLazyConstMetric(currentDesc, metrics.GaugeValue, float64(current))
	values <- metrics.NewLazyConstMetric(obsoleteDesc, metrics.GaugeValue, float64(obsolete))
}

// count returns the numbers of wanted objects, of existing wanted objects, and of obsolete
// objects.
func (c *Controller) count() (goal, current, obsolete int) {
	wanted := map[capacity.Item]bool{}
	classes := c.classes()
	for _, segment := range c.Segments.All() {
		for _, class := range classes {
			wanted[capacity.Item{Class: class, Segment: segment}] = true
		}
	}
	existing := map[capacity.Item]bool{}
	for _, cached := range c.objects.GetStore().List() {
		object, ok := cached.(*storagev1.CSIStorageCapacity)
		switch {
		case !ok:
		case wanted[capacity.ItemOf(object)]:
			existing[capacity.ItemOf(object)] = true
		default:
			obsolete++
		}
	}
	return len(wanted), len(existing), obsolete
}
