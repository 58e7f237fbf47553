package garbagecollector

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

const (
	// withdrawnAfter is how long discovery must lack a kind, without a failure, until the kind may be gone although
	// its group is served.
	withdrawnAfter = 10 * time.Minute
	// droppedAfter is that time for a kind of Kubernetes: an upgrade of its API servers may pause, and one of the former
	// version does not know the kinds of the next one, of which there are objects.
	droppedAfter = 24 * time.Hour
)

// setWithdrawn records which watched kinds discovery lacks. The caller holds the lock.
func (d *kindDiscovery) setWithdrawn(kinds []*graph.Kind) {
	since := make(map[schema.GroupKind]time.Time, len(kinds))
	for _, kind := range kinds {
		began, known := d.withdrawn[kind.GroupKind()]
		if !known {
			began = d.clock.Now()
		}
		since[kind.GroupKind()] = began
	}
	d.withdrawn = since
}

// isWithdrawn reports whether discovery has lacked the kind for long, and its path is not served: an aggregated
// API server, or Kubernetes itself, may drop a kind of a group that it still serves.
func (d *kindDiscovery) isWithdrawn(ctx context.Context, kind *graph.Kind) (bool, error) {
	d.mu.Lock()
	since, lacked := d.withdrawn[kind.GroupKind()]
	d.mu.Unlock()
	limit := withdrawnAfter
	if isOfKubernetes(kind) {
		limit = droppedAfter
	}
	if !lacked || d.clock.Since(since) < limit {
		return false, nil
	}
	if err := d.throttle.Wait(ctx); err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	_, err := d.lists.Resource(kind.GroupVersionResource()).List(ctx, metav1.ListOptions{Limit: 1})
	if isPathNotFound(err) {
		return true, nil
	}
	return false, err
}
