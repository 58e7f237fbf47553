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

// Driver reports capacity.
type Driver interface {
	GetCapacity(ctx context.Context, request *spec.GetCapacityRequest) (*spec.GetCapacityResponse, error)
}

// Segments are the topology segments of the driver.
type Segments interface {
	All() []topology.Segment
	Has(segment topology.Segment) bool
	// Watch has changed called for every segment that appears or disappears, and returns
	// once all segments are known.
	Watch(ctx context.Context, changed func(topology.Segment)) error
}

// Config configures the controller.
type Config struct {
	// Client has a rate limit of its own.
	Client  kubernetes.Interface
	Driver  Driver
	Manager capacity.Manager
	// Classes are all storage classes; Volumes includes at least the driver's volumes.
	Classes, Volumes cache.SharedIndexInformer
	Segments         Segments
	// Immediate: classes with Immediate binding have objects too.
	Immediate bool
	// Interval is the time between two polls of the driver.
	Interval time.Duration
	Backoff  controller.Backoff
}

// Controller writes the objects.
type Controller struct {
	Config
	factory  informers.SharedInformerFactory
	objects  cache.SharedIndexInformer
	versions *controller.Versions
	memory   *memory
	loop     *controller.Loop
}

// Indexes of the objects.
const (
	byItem    = "item"
	byClass   = "class"
	bySegment = "segment"
)

// New returns the controller.
func New(config Config) (*Controller, error) {
	ofManager := func(options *metav1.ListOptions) {
		options.LabelSelector = labels.Set(config.Manager.Labels()).String()
	}
	c := &Controller{
		Config:   config,
		versions: controller.NewVersions(),
		memory:   newMemory(),
		factory: informers.NewSharedInformerFactoryWithOptions(config.Client, 0,
			informers.WithNamespace(config.Manager.Namespace),
			informers.WithTweakListOptions(ofManager), informers.WithTransform(controller.StripManagedFields)),
	}
	c.objects = c.factory.Storage().V1().CSIStorageCapacities().Informer()
	c.loop = controller.NewLoop("csistoragecapacity", config.Backoff, c.Reconcile)
	if err := c.objects.AddIndexers(objectIndexers()); err != nil {
		return nil, fmt.Errorf("index capacity objects: %w", err)
	}
	return c, nil
}

// Watch registers the event handlers, and returns once all segments, classes and objects
// are known: a missing segment or class would remove objects.
func (c *Controller) Watch(ctx context.Context) error {
	c.factory.StartWithContext(ctx)
	if err := c.Segments.Watch(ctx, c.enqueueSegment); err != nil {
		return err
	}
	return controller.RegisterHandlers(ctx,
		controller.EventHandler{Informer: c.Classes, Handler: controller.OnChange(c.classChanged, c.classDeleted)},
		controller.EventHandler{Informer: c.Volumes, Handler: controller.OnChange(c.volumeChanged, c.refreshVolume)},
		controller.EventHandler{Informer: c.objects, Handler: controller.OnChange(c.objectChanged, c.objectDeleted)},
	)
}

// Run reconciles the objects until the context ends. Watch has succeeded.
func (c *Controller) Run(ctx context.Context, workers int) {
	defer c.factory.Shutdown()
	klog.FromContext(ctx).Info("Publishing capacity", "manager", c.Manager.ID, "namespace", c.Manager.Namespace,
		"segments", len(c.Segments.All()))
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

// Reconcile takes steps for one item until the decision is to wait.
func (c *Controller) Reconcile(ctx context.Context, key string) error {
	item := capacity.ItemOfKey(key)
	c.memory.begin(key)
	for steps := new(controller.StepCounter); ; {
		o, err := c.observe(ctx, item)
		if err != nil {
			return err
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
		if action != capacity.Ask { // the cache has not seen the write yet
			return nil
		}
	}
}

// observation is the observed state of one item, with the objects it was read from.
type observation struct {
	objects []*storagev1.CSIStorageCapacity
	class   *storagev1.StorageClass
	answer  capacity.Answer
	state   capacity.State
}

// observe returns an error if the cache is stale.
func (c *Controller) observe(ctx context.Context, item capacity.Item) (observation, error) {
	o := observation{objects: c.objectsBy(byItem, item.Key()), class: c.class(item.Class)}
	for _, object := range o.objects {
		if !c.versions.IsFresh(object) {
			return o, controller.AwaitWrite(ctx, c.versions, object, c.Client.StorageV1().CSIStorageCapacities(object.Namespace).
				Get)
		}
	}
	o.state = capacity.State{Wanted: o.class != nil && c.Segments.Has(item.Segment),
		Objects: capacity.CountOf(len(o.objects))}
	if !o.state.Wanted {
		c.memory.drop(item.Key())
		return o, nil
	}
	o.answer, o.state.Known = c.memory.answer(item.Key())
	if o.state.Objects == capacity.One {
		o.state.Same, o.state.Owned = capacity.HasAnswer(o.objects[0], o.answer), c.Manager.Owns(o.objects[0])
	}
	return o, nil
}

// class returns the storage class, nil if the class has no objects.
func (c *Controller) class(name string) *storagev1.StorageClass {
	class := controller.Lookup[*storagev1.StorageClass](c.Classes, name)
	if class == nil || !capacity.HasObjects(c.Manager.Driver, class, c.Immediate) {
		return nil
	}
	return class
}

// classes returns the names of the storage classes with objects.
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
