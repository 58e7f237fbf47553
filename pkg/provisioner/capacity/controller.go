package capacity

import (
	"context"
	"fmt"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/capacity"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/topology"
)

// Driver knows how much is left.
type Driver interface {
	GetCapacity(ctx context.Context, request *spec.GetCapacityRequest) (*spec.GetCapacityResponse, error)
}

// Segments are the parts of the cluster.
type Segments interface {
	All() []topology.Segment
	Has(segment topology.Segment) bool
	// Watch has the function called for segments that come and go. It returns what
	// says whether all segments are known.
	Watch(changed func(topology.Segment)) (cache.InformerSynced, error)
}

// Config is what the controller works with.
type Config struct {
	// Client has a budget of its own.
	Client  kubernetes.Interface
	Driver  Driver
	Manager capacity.Manager
	// Classes are all storage classes, Volumes those of the driver at least.
	Classes, Volumes cache.SharedIndexInformer
	Segments         Segments
	// Immediate: classes that do not wait for a consumer count, too.
	Immediate bool
	// Interval is the time after which the driver is asked again.
	Interval time.Duration
	Backoff  controller.Backoff
}

// Controller keeps the objects.
type Controller struct {
	Config
	factory  informers.SharedInformerFactory
	objects  cache.SharedIndexInformer
	versions *controller.Versions
	memory   *memory
	loop     *controller.Loop
	synced   []cache.InformerSynced
}

// Names of the indexes of the objects.
const (
	byItem    = "item"
	byClass   = "class"
	bySegment = "segment"
)

// New returns the controller and registers it with the caches.
func New(config Config) (*Controller, error) {
	ours := func(options *metav1.ListOptions) {
		options.LabelSelector = labels.Set(config.Manager.Labels()).String()
	}
	c := &Controller{
		Config:   config,
		versions: controller.NewVersions(),
		memory:   newMemory(),
		factory: informers.NewSharedInformerFactoryWithOptions(config.Client, 0, informers.WithNamespace(config.Manager.Namespace),
			informers.WithTweakListOptions(ours), informers.WithTransform(controller.StripManagedFields)),
	}
	c.objects = c.factory.Storage().V1().CSIStorageCapacities().Informer()
	c.loop = controller.NewLoop("csistoragecapacity", config.Backoff, c.Reconcile).Only(c.exists)
	if err := c.watch(); err != nil {
		return nil, fmt.Errorf("watch for capacity: %w", err)
	}
	return c, nil
}

// Run keeps the objects with so many workers until the context ends. It begins once
// all segments and classes are known, so that nothing is removed for want of them.
func (c *Controller) Run(ctx context.Context, workers int) {
	c.factory.StartWithContext(ctx)
	defer c.factory.Shutdown()
	if !cache.WaitForCacheSync(ctx.Done(), c.synced...) {
		return
	}
	klog.FromContext(ctx).Info("Publishing capacity", "manager", c.Manager.ID, "namespace", c.Manager.Namespace, "segments", len(c.Segments.All()))
	go c.poll(ctx)
	c.loop.Run(ctx, workers)
}

func (c *Controller) poll(ctx context.Context) {
	ticker := time.NewTicker(c.Interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			for _, segment := range c.Segments.All() {
				c.refreshSegment(segment)
			}
		}
	}
}

// Reconcile takes step after step for one item until there is nothing left to do.
func (c *Controller) Reconcile(ctx context.Context, key string) error {
	item := capacity.ItemOfKey(key)
	for steps := new(controller.StepCounter); ; {
		o, fresh := c.observe(item)
		if !fresh { // the event of the own write comes, and has the item looked at again
			return nil
		}
		action := capacity.Decide(o.state)
		if action == capacity.Wait {
			return nil
		}
		if err := steps.Next(); err != nil {
			return err
		}
		if err := c.execute(ctx, item, o, action); err != nil {
			return err
		}
		if action != capacity.Ask { // the cache has yet to see what was written
			return nil
		}
	}
}

// exists says whether there is an object of the item, or shall be one.
func (c *Controller) exists(key string) bool {
	item := capacity.ItemOfKey(key)
	return c.class(item.Class) != nil && c.Segments.Has(item.Segment) || len(c.objectsBy(byItem, key)) > 0
}

// observation is an item and what is known of it.
type observation struct {
	objects []*storagev1.CSIStorageCapacity
	class   *storagev1.StorageClass
	answer  capacity.Answer
	state   capacity.State
}

// observe is false if the cache lags behind an own write.
func (c *Controller) observe(item capacity.Item) (observation, bool) {
	o := observation{objects: c.objectsBy(byItem, item.Key()), class: c.class(item.Class)}
	for _, object := range o.objects {
		if !c.versions.IsFresh(object) {
			return o, false
		}
	}
	o.state = capacity.State{Wanted: o.class != nil && c.Segments.Has(item.Segment), Objects: capacity.CountOf(len(o.objects))}
	if !o.state.Wanted {
		c.memory.drop(item.Key())
		return o, true
	}
	o.answer, o.state.Known = c.memory.answer(item.Key())
	if o.state.Objects == capacity.One {
		o.state.Same, o.state.Owned = capacity.Says(o.objects[0], o.answer), c.Manager.Owns(o.objects[0])
	}
	return o, true
}

// class returns the class if there shall be objects for it.
func (c *Controller) class(name string) *storagev1.StorageClass {
	class := controller.Lookup[*storagev1.StorageClass](c.Classes, name)
	if class == nil || !capacity.HasObjects(c.Manager.Driver, class, c.Immediate) {
		return nil
	}
	return class
}

// classes returns the names of the classes that there shall be objects for.
func (c *Controller) classes() []string {
	var names []string
	for _, object := range c.Classes.GetStore().List() {
		if class, ok := object.(*storagev1.StorageClass); ok && capacity.HasObjects(c.Manager.Driver, class, c.Immediate) {
			names = append(names, class.Name)
		}
	}
	return names
}

func (c *Controller) objectsBy(index, value string) []*storagev1.CSIStorageCapacity {
	found, err := c.objects.GetIndexer().ByIndex(index, value)
	if err != nil {
		return nil
	}
	objects := make([]*storagev1.CSIStorageCapacity, 0, len(found))
	for _, object := range found {
		objects = append(objects, object.(*storagev1.CSIStorageCapacity))
	}
	return objects
}
