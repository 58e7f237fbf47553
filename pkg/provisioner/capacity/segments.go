package capacity

import (
	"context"
	"sync"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/capacity"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/topology"
)

// Local is the only segment with --node-deployment: that of the served node.
type Local topology.Segment

// All returns the segment.
func (l Local) All() []topology.Segment { return []topology.Segment{topology.Segment(l)} }

// Has reports whether the segment is that of the served node.
func (l Local) Has(segment topology.Segment) bool { return segment == topology.Segment(l) }

// Watch never calls the function: the segment of the served node does not change.
func (l Local) Watch(context.Context, func(topology.Segment)) error { return nil }

// Nodes are the segments of all nodes. An event of a node updates the segment of that node
// only.
type Nodes struct {
	driver            string
	nodes, registered cache.SharedIndexInformer

	mu      sync.Mutex
	of      map[string]topology.Segment // segment by node name
	count   map[topology.Segment]int    // number of nodes by segment
	changed func(topology.Segment)
}

// NewNodes returns the segments of the driver's nodes. The informers are those of Nodes,
// with labels only, and of CSINodes.
func NewNodes(driver string, nodes, registered cache.SharedIndexInformer) *Nodes {
	return &Nodes{
		driver: driver, nodes: nodes, registered: registered,
		of: map[string]topology.Segment{}, count: map[topology.Segment]int{},
	}
}

// All returns the segments, unordered.
func (n *Nodes) All() []topology.Segment {
	n.mu.Lock()
	defer n.mu.Unlock()
	segments := make([]topology.Segment, 0, len(n.count))
	for segment := range n.count {
		segments = append(segments, segment)
	}
	return segments
}

// Has reports whether a node lies in the segment.
func (n *Nodes) Has(segment topology.Segment) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.count[segment] > 0
}

// Watch registers the event handlers of nodes, and returns once all nodes are known.
func (n *Nodes) Watch(ctx context.Context, changed func(topology.Segment)) error {
	n.changed = changed
	return controller.RegisterHandlers(ctx,
		controller.EventHandler{Informer: n.nodes, Handler: controller.OnChange(
			func(_, node *v1.Node) { n.update(node.Name) }, func(node *v1.Node) { n.update(node.Name) })},
		controller.EventHandler{Informer: n.registered, Handler: controller.OnChange(
			func(_, node *storagev1.CSINode) { n.update(node.Name) }, func(node *storagev1.CSINode) { n.update(node.Name) })},
	)
}

// update reads the segment of a node again and reports changed segments.
func (n *Nodes) update(name string) {
	for _, segment := range n.reassign(name) {
		n.changed(segment)
	}
}

// reassign returns the segments that appear or disappear with the node's current segment.
// The caches are read under the lock, so that the later of two events never sees older
// objects than the earlier.
func (n *Nodes) reassign(name string) (changed []topology.Segment) {
	n.mu.Lock()
	defer n.mu.Unlock()
	before, had := n.of[name]
	now, has := capacity.SegmentOfNode(n.driver, controller.Lookup[*storagev1.CSINode](n.registered, name),
		controller.Lookup[*v1.Node](n.nodes, name))
	if had == has && before == now {
		return nil
	}
	if has {
		n.of[name] = now
		if n.count[now]++; n.count[now] == 1 {
			changed = append(changed, now)
		}
	} else {
		delete(n.of, name)
	}
	if had {
		if n.count[before]--; n.count[before] == 0 {
			delete(n.count, before)
			changed = append(changed, before)
		}
	}
	return changed
}
