package garbagecollector

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/metadata"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/garbage/barrier"
	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

// watches are the kinds that are collected, each with its watch, and what the watches have shown of the definitions
// of kinds.
type watches struct {
	*sharedGraph
	*restore
	// reads lists and watches metadata.
	reads metadata.Interface
	// rediscover has the kinds discovered anew: a definition changed.
	rediscover signal
	// awaited wakes the barriers: a watch has come further, or a kind has another watch.
	awaited signal
	// monitoring are the running reflectors.
	monitoring wait.Group

	// The mutex of the graph guards the fields below.

	// watching is the context of the reflectors, also of those that a barrier starts.
	watching context.Context
	monitors map[schema.GroupKind]*monitor
	// definitions are the CustomResourceDefinitions in the graph, by name.
	definitions map[string]types.UID
	// outdated: a definition changed since discovery began last.
	outdated bool
	// run is the barrier that is under way, which follows the watches; nil if there is none.
	run *barrier.Run[*graph.Kind]
}

func newWatches(known *sharedGraph, restore *restore, reads metadata.Interface) *watches {
	return &watches{
		sharedGraph: known, restore: restore, reads: reads, rediscover: newSignal(), awaited: newSignal(),
		watching: context.Background(), monitors: map[schema.GroupKind]*monitor{}, definitions: map[string]types.UID{},
	}
}

// watchWithin has the reflectors end with the context.
func (w *watches) watchWithin(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watching = ctx
}

// serve serves one kind, under the version in use while that is served. The caller holds the
// lock.
func (w *watches) serve(kind *graph.Kind, versions map[schema.GroupVersionResource]bool) {
	m, current := w.monitors[kind.GroupKind()], w.graph.Kind(kind.GroupKind())
	switch {
	// The definition was created again with another scope. The objects of the former one are gone, and would keep owners
	// waiting.
	case w.isRescoped(kind):
		m.stop()
		w.graph.Drop(m.kind)
		w.graph.Serve(kind)
		w.replace(m, kind)
	case m != nil && versions[m.kind.GroupVersionResource()]:
		if current == nil {
			w.graph.Serve(m.kind)
		}
	case m != nil:
		m.stop()
		w.graph.Replace(m.kind, kind)
		w.replace(m, kind)
	case kind.Collected:
		w.graph.Serve(kind)
		w.start(kind)
	case current == nil || !versions[current.GroupVersionResource()] || current.Namespaced != kind.Namespaced:
		w.graph.Serve(kind)
	}
}

// replace watches the kind instead of the former one, and has the barrier that runs do so. The
// caller holds the lock.
func (w *watches) replace(former *monitor, kind *graph.Kind) {
	w.start(kind)
	if w.run != nil {
		w.run.Replace(former.kind, kind)
		w.awaited.wake()
	}
}

// isRescoped reports whether the kind is watched with another scope. The caller holds the lock.
func (w *watches) isRescoped(kind *graph.Kind) bool {
	m := w.monitors[kind.GroupKind()]
	return m != nil && m.kind.Namespaced != kind.Namespaced
}

// start starts a reflector for the kind. The caller holds the lock.
func (w *watches) start(kind *graph.Kind) {
	watching, stop := context.WithCancel(w.watching)
	m := &monitor{watches: w, kind: kind, stop: stop}
	w.monitors[kind.GroupKind()] = m
	w.monitoring.StartWithContext(watching, m.watch)
}

// drop ends the watch of a kind that is gone, and forgets its objects.
func (w *watches) drop(kind *graph.Kind) {
	w.change(func(g *graph.Graph) {
		if m := w.monitors[kind.GroupKind()]; m != nil && m.kind == kind {
			m.stop()
			delete(w.monitors, kind.GroupKind())
			g.Drop(kind)
			if w.run != nil {
				w.run.Remove(kind)
				w.awaited.wake()
			}
		}
	})
}

// mayIgnorePreconditions reports whether the kind may be served by an aggregated API server,
// which need not know the preconditions of a deletion.
func (w *watches) mayIgnorePreconditions(kind *graph.Kind) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mayBeAggregated(kind)
}

// mayBeAggregated reports whether another API server than that of Kubernetes may serve the kind. The caller holds
// the lock.
func (w *watches) mayBeAggregated(kind *graph.Kind) bool {
	_, defined := w.definitions[kind.GroupResource().String()]
	return !defined && !isOfKubernetes(kind)
}

// checkedList sends a list request. Only an aggregated API server may answer without a version: the empty page of
// another server behind the address would say that no object is left, and owners would be released before their
// dependents.
func (w *watches) checkedList(
	kind *graph.Kind, list func() (*metav1.PartialObjectMetadataList, error),
) (*metav1.PartialObjectMetadataList, error) {
	found, err := list()
	if w.mayIgnorePreconditions(kind) {
		return found, err
	}
	return answer.CheckedList(found, err)
}

// relistPause is the least time between two lists of an aggregated kind whose reads are behind its watch.
const relistPause = time.Minute

// doubt is for a read that is older than what the watch delivered before. The storage was restored, or an aggregated
// API server answers from a cache: a list tells. The caller holds the lock.
func (w *watches) doubt(kind *graph.Kind) error {
	// Kubernetes itself never answers with an older state. What the graph has of owners may have been undone, and
	// dependents of an owner that is back would be deleted: the process ends, and the next one lists the cluster.
	if !w.mayBeAggregated(kind) {
		w.end(kind)
		return ErrRestored
	}
	m, now := w.monitors[kind.GroupKind()], w.clock.Now()
	if m != nil && m.restart != nil && now.Sub(m.restarted) >= relistPause {
		m.restarted = now
		m.restart()
	}
	return fmt.Errorf("read %s: %w", kind.GroupResource(), errBehind)
}

// isOlder reports whether the version is older than the other one; versions that cannot be compared are not.
func isOlder(version, than string) bool {
	order, integers := graph.Compare(version, than)
	return integers && order < 0
}

// noteDefinition records that a definition of a kind exists or is gone. A definition that was created again
// may be known before the end of the one before. The caller holds the lock.
func (w *watches) noteDefinition(kind *graph.Kind, definition *metav1.PartialObjectMetadata, exists bool) {
	switch kind.GroupKind() {
	case definitionKind:
		if exists {
			w.definitions[definition.Name] = definition.UID
		} else if w.definitions[definition.Name] == definition.UID {
			delete(w.definitions, definition.Name)
		}
	case serviceKind:
	default:
		return
	}
	w.outdated = true
	w.rediscover.wake()
}
