package garbagecollector

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

// chunk is the number of listed objects that enter the graph under one lock.
const chunk = 1000

var (
	definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	serviceKind    = schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}
)

// monitor feeds the objects of one kind to the graph. It is the store of a reflector, but
// stores nothing.
type monitor struct {
	*Collector
	kind *graph.Kind
	stop context.CancelFunc
	// position is the version up to which the watch has come; the mutex of the collector
	// guards both fields.
	position string
	listed   bool
}

var (
	_ cache.TransformingStore      = (*monitor)(nil)
	_ cache.ResourceVersionUpdater = (*monitor)(nil)
)

// startMonitor starts a reflector for the kind. The caller holds the lock.
func (c *Collector) startMonitor(ctx context.Context, kind *graph.Kind) {
	watching, stop := context.WithCancel(ctx)
	m := &monitor{Collector: c, kind: kind, stop: stop}
	c.monitors[kind.GroupKind()] = m
	client := c.Reads.Resource(kind.GroupVersionResource())
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (list runtime.Object, err error) {
			found, err := client.List(ctx, options)
			if err != nil {
				return nil, err
			}
			for i := range found.Items {
				strip(&found.Items[i])
			}
			return found, nil
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return client.Watch(ctx, options)
		},
	}
	reflector := cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(source, c.Reads), &metav1.PartialObjectMetadata{}, m,
		cache.ReflectorOptions{Name: "garbage-collector", TypeDescription: kind.GroupResource().String()})
	c.monitoring.StartWithContext(watching, reflector.RunWithContext)
}

// strip removes what the graph does not need, so that a list of many objects is small.
func strip(object *metav1.PartialObjectMetadata) {
	object.ManagedFields, object.Annotations, object.Labels = nil, nil, nil
}

// Transformer returns the function that strips objects of a list that is being received.
func (m *monitor) Transformer() cache.TransformFunc {
	return func(object any) (any, error) {
		if partial, ok := object.(*metav1.PartialObjectMetadata); ok {
			strip(partial)
		}
		return object, nil
	}
}

// Add records an added object.
func (m *monitor) Add(object any) error { return m.observe(object) }

// Update records a changed object.
func (m *monitor) Update(object any) error { return m.observe(object) }

func (m *monitor) observe(object any) error {
	partial, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return fmt.Errorf("observe %T: not metadata", object)
	}
	m.noteDefinition(partial.Name, true)
	m.change(func(g *graph.Graph) {
		if m.runs() {
			g.Observe(m.kind, partial)
		}
	})
	return nil
}

// Delete records that an object is gone.
func (m *monitor) Delete(object any) error {
	partial, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return fmt.Errorf("delete %T: not metadata", object)
	}
	m.noteDefinition(partial.Name, false)
	at := graph.Coordinates{GroupKind: m.kind.GroupKind(), Namespace: partial.Namespace, Name: partial.Name}
	m.change(func(g *graph.Graph) { g.Deleted(partial.UID, at) })
	return nil
}

// Replace records a list. What it lacks is read live or forgotten.
func (m *monitor) Replace(list []any, version string) error {
	present := make(map[types.UID]struct{}, len(list))
	var errs []error
	for len(list) > 0 {
		part := list[:min(chunk, len(list))]
		list = list[len(part):]
		m.change(func(g *graph.Graph) {
			for _, object := range part {
				if partial, ok := object.(*metav1.PartialObjectMetadata); ok && m.runs() {
					present[partial.UID] = struct{}{}
					g.Observe(m.kind, partial)
					m.noteDefinitionLocked(partial.Name, true)
				} else if !ok {
					errs = append(errs, fmt.Errorf("list %T: not metadata", object))
				}
			}
		})
	}
	m.change(func(g *graph.Graph) {
		if !m.runs() {
			return
		}
		g.Vanished(m.kind, version, present)
		m.listed = true
		m.reach(version)
	})
	return errors.Join(errs...)
}

// UpdateResourceVersion records how far the watch has come.
func (m *monitor) UpdateResourceVersion(version string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reach(version)
}

func (m *monitor) reach(version string) {
	m.position = version
	if m.run != nil {
		m.run.Reached(m.kind, version)
		wake(m.awaited)
	}
}

// runs reports whether the monitor is that of its kind; the caller holds the lock. A monitor
// that was stopped may still have events.
func (m *monitor) runs() bool { return m.monitors[m.kind.GroupKind()] == m }

// Resync does nothing.
func (m *monitor) Resync() error { return nil }

// noteDefinition records that a definition of a kind exists or is gone.
func (m *monitor) noteDefinition(name string, exists bool) {
	if m.kind.GroupKind() != definitionKind && m.kind.GroupKind() != serviceKind {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.noteDefinitionLocked(name, exists)
}

func (m *monitor) noteDefinitionLocked(name string, exists bool) {
	switch m.kind.GroupKind() {
	case definitionKind:
		if exists {
			m.definitions[name] = struct{}{}
		} else {
			delete(m.definitions, name)
		}
	case serviceKind:
	default:
		return
	}
	m.outdated = true
	wake(m.rediscover)
}
