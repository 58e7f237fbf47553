package garbagecollector

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

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

// goneKinds find out whether a kind that discovery lacks is gone. Discovery alone proves nothing: if a kind that is
// served by a server which is away, or by the next version of Kubernetes, were dropped, its objects would no longer
// keep their owners, and the owners would be deleted before them.
type goneKinds struct {
	*sharedGraph
	definitions *definitionReads
	// lists asks whether a path is served.
	lists    metadata.Interface
	throttle *Throttle
	// withdrawn is, for watched kinds that discovery lacks, since when it does without a failure. The mutex of the graph
	// guards it.
	withdrawn map[schema.GroupKind]time.Time
}

// setWithdrawn records which watched kinds discovery lacks. The caller holds the lock.
func (g *goneKinds) setWithdrawn(kinds []*graph.Kind) {
	since := make(map[schema.GroupKind]time.Time, len(kinds))
	for _, kind := range kinds {
		began, known := g.withdrawn[kind.GroupKind()]
		if !known {
			began = g.clock.Now()
		}
		since[kind.GroupKind()] = began
	}
	g.withdrawn = since
}

// isWithdrawn reports whether discovery has lacked the kind for long, and its path is not served: an aggregated
// API server, or Kubernetes itself, may drop a kind of a group that it still serves.
func (g *goneKinds) isWithdrawn(ctx context.Context, kind *graph.Kind) (bool, error) {
	g.mu.Lock()
	since, lacked := g.withdrawn[kind.GroupKind()]
	g.mu.Unlock()
	limit := withdrawnAfter
	if isOfKubernetes(kind) {
		limit = droppedAfter
	}
	if !lacked || g.clock.Since(since) < limit {
		return false, nil
	}
	if err := g.throttle.Wait(ctx); err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	_, err := g.lists.Resource(kind.GroupVersionResource()).List(ctx, metav1.ListOptions{Limit: 1})
	if isPathNotFound(err) {
		return true, nil
	}
	return false, err
}

// isGone reports whether neither a CustomResourceDefinition nor an APIService of another
// server defines the kind, or the definition of its resource has another kind by now. A kind of
// Kubernetes has no APIService for a while when an older API server starts, so it must be withdrawn. Any
// kind may be.
func (g *goneKinds) isGone(ctx context.Context, kind *graph.Kind) (bool, error) {
	if kind.Group == "" {
		return g.isWithdrawn(ctx, kind)
	}
	if !isOfKubernetes(kind) {
		switch definition, err := g.definitions.read(ctx, kind.GroupResource().String()); {
		// An API server with a stale definition lacks the kind, or serves the former one under this resource.
		case err == nil:
			return !namesKind(definition, kind.Kind), nil
		case !namesAbsent(err, definitions, kind.GroupResource().String()):
			return false, err
		}
	}
	name := kind.Version + "." + kind.Group
	body, err := g.definitions.readWhole(ctx, services, name)
	switch {
	// An API server of the former version, which starts during an upgrade, deletes the APIServices of versions that it
	// does not know. Objects of these kinds exist, and keep their owners.
	case namesAbsent(err, services, name) && isOfKubernetes(kind):
		return g.isWithdrawn(ctx, kind)
	case namesAbsent(err, services, name):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("read APIService %s: %w", name, err)
	}
	var service struct {
		Spec struct {
			Service *struct{} `json:"service"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(body, &service); err != nil {
		return false, fmt.Errorf("decode APIService %s: %w", name, err)
	}
	if service.Spec.Service == nil && !isOfKubernetes(kind) { // the group has other CustomResourceDefinitions
		return true, nil
	}
	return g.isWithdrawn(ctx, kind)
}
