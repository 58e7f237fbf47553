package garbagecollector

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
func (c *Collector) setWithdrawn(kinds []*graph.Kind) {
	since := make(map[schema.GroupKind]time.Time, len(kinds))
	for _, kind := range kinds {
		began, known := c.withdrawn[kind.GroupKind()]
		if !known {
			began = c.Clock.Now()
		}
		since[kind.GroupKind()] = began
	}
	c.withdrawn = since
}

// isWithdrawn reports whether discovery has lacked the kind for long, and its path is not served: an aggregated
// API server, or Kubernetes itself, may drop a kind of a group that it still serves.
func (c *Collector) isWithdrawn(ctx context.Context, kind *graph.Kind) (bool, error) {
	c.mu.Lock()
	since, lacked := c.withdrawn[kind.GroupKind()]
	c.mu.Unlock()
	limit := withdrawnAfter
	if isOfKubernetes(kind) {
		limit = droppedAfter
	}
	if !lacked || c.Clock.Since(since) < limit {
		return false, nil
	}
	if err := c.Throttle.Wait(ctx); err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	_, err := c.Barriers.Resource(kind.GroupVersionResource()).List(ctx, metav1.ListOptions{Limit: 1})
	if isPathNotFound(err) {
		return true, nil
	}
	return false, err
}

// isPathNotFound reports whether the error is a 404 that names no object.
func isPathNotFound(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Name == ""
}
