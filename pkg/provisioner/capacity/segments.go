package capacity

import (
	"fmt"
	"sync"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/capacity"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/topology"
)

// Local is the one segment of a driver that is deployed on each node.
type Local topology.Segment

// All returns the segment.
func (l Local) All() []topology.Segment { return []topology.Segment{topology.Segment(l)} }

// Has says whether it is the segment.
func (l Local) Has(segment topology.Segment) bool { return segment == topology.Segment(l) }

// Watch calls nothing: the segment of a node stays.
func (l Local) Watch(func(topology.Segment)) (cache.InformerSynced, error) {
	return func() bool { return true }, nil
}

// Nodes are the segments that the nodes of the cluster lie in. A node that comes,
// goes or is labelled anew is looked at by itself.
type Nodes struct {
	driver            string
	nodes, registered cache.SharedIndexInformer

	mu      sync.Mutex
	of      map[string]topology.Segment // by the name of the node
	count   map[topology.Segment]int    // of nodes
	changed func(topology.Segment)
}

// NewNodes returns the segments of the driver. The informers are those of Nodes,
// which need labels only, and of CSINodes.
func NewNodes(driver string, nodes, registered cache.SharedIndexInformer) *Nodes {
	return &Nodes{
		driver: driver, nodes: nodes, registered: registered,
		of: map[string]topology.Segment{}, count: map[topology.Segment]int{},
	}
}

// All returns the segments in no order.
func (n *Nodes) All() []topology.Segment {
	n.mu.Lock()
	defer n.mu.Unlock()
	segments := make([]topology.Segment, 0, len(n.count))
	for segment := range n.count {
		segments = append(segments, segment)
	}
	return segments
}

// Has says whether a node lies in the segment.
func (n *Nodes) Has(segment topology.Segment) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.count[segment] > 0
}

// Watch begins to look at nodes.
func (n *Nodes) Watch(changed func(topology.Segment)) (cache.InformerSynced, error) {
	n.changed = changed
	nodes, err := n.nodes.AddEventHandler(controller.OnChange(
		func(_, node *v1.Node) { n.look(node.Name) }, func(node *v1.Node) { n.look(node.Name) }))
	if err != nil {
		return nil, fmt.Errorf("watch nodes: %w", err)
	}
	registered, err := n.registered.AddEventHandler(controller.OnChange(
		func(_, node *storagev1.CSINode) { n.look(node.Name) }, func(node *storagev1.CSINode) { n.look(node.Name) }))
	if err != nil {
		return nil, fmt.Errorf("watch CSI nodes: %w", err)
	}
	return func() bool { return nodes.HasSynced() && registered.HasSynced() }, nil
}

// look finds out where a node lies now.
func (n *Nodes) look(name string) {
	for _, segment := range n.move(name) {
		n.changed(segment)
	}
}

// move returns the segments that came or went by it. The caches are read under the
// lock: of two events of one node, the later sees what the earlier saw, or more.
func (n *Nodes) move(name string) (changed []topology.Segment) {
	n.mu.Lock()
	defer n.mu.Unlock()
	before, was := n.of[name]
	now, is := capacity.SegmentOfNode(n.driver, controller.Lookup[*storagev1.CSINode](n.registered, name), controller.Lookup[*v1.Node](n.nodes, name))
	if was == is && before == now {
		return nil
	}
	if is {
		n.of[name] = now
		if n.count[now]++; n.count[now] == 1 {
			changed = append(changed, now)
		}
	} else {
		delete(n.of, name)
	}
	if was {
		if n.count[before]--; n.count[before] == 0 {
			delete(n.count, before)
			changed = append(changed, before)
		}
	}
	return changed
}
