package machines

import (
	"context"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// views are the informers that all machines share.
type views struct {
	factory                                   informers.SharedInformerFactory
	pods, nodes, claims, volumes, attachments cache.SharedIndexInformer
}

// The indexes: pods by node, and attachments by node and volume.
const (
	byNode       = "node"
	byAttachment = "attachment"
)

func newViews(client kubernetes.Interface) views {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(dropManagedFields))
	return views{
		factory:     factory,
		pods:        factory.Core().V1().Pods().Informer(),
		nodes:       factory.Core().V1().Nodes().Informer(),
		claims:      factory.Core().V1().PersistentVolumeClaims().Informer(),
		volumes:     factory.Core().V1().PersistentVolumes().Informer(),
		attachments: factory.Storage().V1().VolumeAttachments().Informer(),
	}
}

func dropManagedFields(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}

// start starts the informers, and returns false if ctx ended before they had synced.
func (v views) start(ctx context.Context) bool {
	v.factory.StartWithContext(ctx)
	return cache.WaitForCacheSync(ctx.Done(), v.pods.HasSynced, v.nodes.HasSynced, v.claims.HasSynced,
		v.volumes.HasSynced, v.attachments.HasSynced)
}

// watch sets up indexes and handlers.
func (c *Cloud) watch(s *scheduler) error {
	if err := c.views.pods.AddIndexers(cache.Indexers{byNode: func(object any) ([]string, error) {
		return []string{object.(*v1.Pod).Spec.NodeName}, nil
	}}); err != nil {
		return err
	}
	if err := c.views.attachments.AddIndexers(cache.Indexers{byAttachment: func(object any) ([]string, error) {
		a := object.(*storagev1.VolumeAttachment)
		return []string{attachmentKey(a.Spec.NodeName, a)}, nil
	}}); err != nil {
		return err
	}
	for informer, handler := range map[cache.SharedIndexInformer]cache.ResourceEventHandler{
		c.views.pods: changes(func(object any, removed bool) {
			c.seePod(object.(*v1.Pod), removed)
			s.wake()
		}),
		c.views.nodes: changes(func(object any, _ bool) {
			c.seeNode(object.(*v1.Node).Name)
			s.wake()
		}),
		c.views.claims:  changes(func(any, bool) { c.seeVolume() }),
		c.views.volumes: changes(func(any, bool) { c.seeVolume() }),
		c.views.attachments: changes(func(object any, _ bool) {
			a := object.(*storagev1.VolumeAttachment)
			c.attacher.queue.Add(a.Name)
			c.seeAttachment(a)
		}),
	} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return err
		}
	}
	return nil
}

// changes calls see for each change of an object.
func changes(see func(object any, removed bool)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { see(object, false) },
		UpdateFunc: func(_, object any) { see(object, false) },
		DeleteFunc: func(object any) {
			if unknown, is := object.(cache.DeletedFinalStateUnknown); is {
				object = unknown.Obj
			}
			see(object, true)
		},
	}
}

func (c *Cloud) seePod(object *v1.Pod, removed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.byName[object.Spec.NodeName]
	switch {
	case m == nil:
	case removed:
		m.seeRemoval(object)
	default:
		m.see(object)
	}
}

func (c *Cloud) seeNode(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.byName[name]; m != nil {
		m.changed.send()
	}
}

// seeAttachment wakes the pods that wait for a disk of their machine.
func (c *Cloud) seeAttachment(a *storagev1.VolumeAttachment) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.byName[a.Spec.NodeName]; m != nil {
		m.wakeWaiting()
	}
}

// seeVolume wakes all pods that wait for a disk.
func (c *Cloud) seeVolume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.machines {
		m.wakeWaiting()
	}
}

func (m *machine) wakeWaiting() {
	for _, p := range m.pods {
		if p.waits {
			p.changed.send()
		}
	}
}

// node returns the Node, or nil.
func (c *Cloud) node(name string) *v1.Node { return get[*v1.Node](c.views.nodes, name) }

// podsOf returns the pods that are bound to a node, "" for those that are bound to none.
func (c *Cloud) podsOf(node string) []*v1.Pod {
	objects, err := c.views.pods.GetIndexer().ByIndex(byNode, node)
	if err != nil {
		panic(err) // the index exists
	}
	pods := make([]*v1.Pod, len(objects))
	for i, object := range objects {
		pods[i] = object.(*v1.Pod)
	}
	return pods
}

// get returns the object of a key, or nil.
func get[T any](informer cache.SharedIndexInformer, key string) (object T) {
	if found, exists, err := informer.GetIndexer().GetByKey(key); err == nil && exists {
		object = found.(T)
	}
	return object
}
