package garbagecollector

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

// chunk is the number of listed objects that enter the graph under one lock.
const chunk = 1000

// monitor feeds the objects of one kind to the graph. It is the store of a reflector, but
// stores nothing.
type monitor struct {
	*watches
	kind *graph.Kind
	stop context.CancelFunc
	// position is the version up to which the watch has come, "" if that proves nothing; reached the same,
	// whatever it proves. The mutex of the graph guards all fields from here on.
	position, reached string
	listed            bool
	// restart ends the reflector, which another one follows; nil if there is none. restarted is when that was done last.
	restart   context.CancelFunc
	restarted time.Time
}

var (
	_ cache.TransformingStore      = (*monitor)(nil)
	_ cache.ResourceVersionUpdater = (*monitor)(nil)
)

// watch runs reflectors one after the other until the context ends.
func (m *monitor) watch(ctx context.Context) {
	for ctx.Err() == nil {
		running, end := context.WithCancel(ctx)
		m.mu.Lock()
		m.restart = end
		m.mu.Unlock()
		m.newReflector().RunWithContext(running)
		end()
	}
}

func (m *monitor) newReflector() *cache.Reflector {
	client := m.reads.Resource(m.kind.GroupVersionResource())
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (list runtime.Object, err error) {
			found, err := m.checkedList(m.kind, func() (*metav1.PartialObjectMetadataList, error) {
				return client.List(ctx, options)
			})
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
	return cache.NewReflectorWithOptions(
		cache.ToListWatcherWithWatchListSemantics(source, m.reads), &metav1.PartialObjectMetadata{}, m,
		cache.ReflectorOptions{Name: "garbage-collector", TypeDescription: m.kind.GroupResource().String()})
}

// strip removes what the graph does not need, so that a list of many objects is small.
func strip(object *metav1.PartialObjectMetadata) {
	object.ManagedFields, object.Annotations, object.Labels = nil, nil, nil
}

// listed stands for an object of a list that is in the graph already. The store of the list that
// is being received needs its identity only; it shares the texts with the graph.
type listed struct {
	metav1.Object   // empty, and the same for all
	uid             types.UID
	namespace, name string
	version         string
}

var nothingElse metav1.Object = &metav1.ObjectMeta{}

// GetNamespace returns the namespace of the object.
func (l *listed) GetNamespace() string { return l.namespace }

// GetName returns the name of the object.
func (l *listed) GetName() string { return l.name }

// GetUID returns the UID of the object.
func (l *listed) GetUID() types.UID { return l.uid }

// GetResourceVersion returns the version of the object.
func (l *listed) GetResourceVersion() string { return l.version }

// Transformer returns the function that records the objects of a list while the list is being
// received: not all of them are in memory beside the graph. An object that is gone when the
// list ends is not in the list, and vanishes.
func (m *monitor) Transformer() cache.TransformFunc {
	return func(object any) (any, error) {
		partial, ok := object.(*metav1.PartialObjectMetadata)
		if !ok {
			return object, nil
		}
		other := false
		m.change(func(g *graph.Graph) {
			m.observeListed(g, partial)
			other = g.HasOtherVersion(partial.UID, partial.ResourceVersion)
		})
		if other { // etcd may have been restored: then Replace records this older version
			strip(partial)
			return partial, nil
		}
		namespace := unique.Make(partial.Namespace).Value()
		return &listed{nothingElse, partial.UID, namespace, partial.Name, partial.ResourceVersion}, nil
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
	m.change(func(g *graph.Graph) { m.record(g, partial) })
	return nil
}

// record has the graph observe an object. The caller holds the lock.
func (m *monitor) record(g *graph.Graph, partial *metav1.PartialObjectMetadata) {
	if m.runs() && g.Observe(m.kind, partial) {
		m.noteDefinition(m.kind, partial, true)
	}
}

// observeListed records an object of a list. The caller holds the lock.
func (m *monitor) observeListed(g *graph.Graph, partial *metav1.PartialObjectMetadata) {
	isKnown := g.Has(partial.UID)
	m.record(g, partial)
	switch {
	case m.listed && isKnown:
		g.ListedAgain(partial.UID)
	case m.listed:
		g.Reappeared(partial.UID)
	}
}

// Delete records that an object is gone, and how far the watch has come: a list that was read before must
// not put the object back until the reflector says so.
func (m *monitor) Delete(object any) error {
	partial, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return fmt.Errorf("delete %T: not metadata", object)
	}
	at := graph.Coordinates{GroupKind: m.kind.GroupKind(), Namespace: partial.Namespace, Name: partial.Name}
	m.change(func(g *graph.Graph) {
		m.noteDefinition(m.kind, partial, false)
		g.Deleted(partial.UID, at)
		// The position moves with the end of the object, at once: a barrier that read its list before would put the object
		// back, and its owner would wait for an object that is gone.
		if m.runs() {
			m.reach(partial.ResourceVersion)
		}
	})
	return nil
}

// Replace records a list. What it lacks is read live or forgotten.
func (m *monitor) Replace(list []any, version string) error {
	present := make(map[types.UID]struct{}, len(list))
	var errs []error
	m.change(func(g *graph.Graph) {
		// The list is older than what the watch had shown: etcd was restored. References and finalizers in the graph may be
		// from a time that no longer was, and what is judged by them be deleted.
		if m.runs() && isOlder(version, m.reached) {
			m.rewind(g)
		}
	})
	for len(list) > 0 {
		part := list[:min(chunk, len(list))]
		list = list[len(part):]
		m.change(func(g *graph.Graph) {
			for _, object := range part {
				item, ok := object.(metav1.Object)
				if !ok {
					errs = append(errs, fmt.Errorf("list %T: not metadata", object))
					continue
				}
				present[item.GetUID()] = struct{}{}
				m.list(g, object, version)
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

// list records an object of a list, unless the graph has it in this version already. The caller holds the lock.
func (m *monitor) list(g *graph.Graph, object any, version string) {
	partial, whole := object.(*metav1.PartialObjectMetadata)
	if !whole || !m.runs() {
		return
	}
	if g.Contradicts(m.kind, partial, version) { // a restore that raised the revision shows in single objects only
		m.rewind(g)
	}
	m.observeListed(g, partial)
}

// UpdateResourceVersion records how far the watch has come.
func (m *monitor) UpdateResourceVersion(version string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reach(version)
}

func (m *monitor) reach(version string) {
	m.reached, m.position = version, version
	if m.run != nil {
		m.run.Reached(m.kind, version)
		m.awaited.wake()
	}
}

// rewind has a list replace what is known of the kind, which is newer: the storage was restored. The caller holds the
// lock.
func (m *monitor) rewind(g *graph.Graph) {
	if !m.mayBeAggregated(m.kind) {
		m.end(m.kind)
		return
	}
	g.Rewind(m.kind)
	m.position = ""
}

// runs reports whether the monitor is that of its kind; the caller holds the lock. A monitor
// that was stopped may still have events.
func (m *monitor) runs() bool { return m.monitors[m.kind.GroupKind()] == m }

// Resync does nothing.
func (m *monitor) Resync() error { return nil }
