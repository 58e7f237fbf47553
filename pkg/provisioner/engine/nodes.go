package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// SelectedNodes reads the nodes that the scheduler selected for claims:
//
//	driver has topology  node                 source
//	no                   any                  the name alone, no request
//	yes                  the served node      the topology of the driver, no request
//	yes                  any other            a live read; the cache if reading is forbidden
type SelectedNodes struct {
	Client kubernetes.Interface
	// HasTopology is false for a driver without topology: the selected node then makes
	// no difference, even if the node was deleted.
	HasTopology bool
	// Served is the name of the served node with --node-deployment, "" otherwise;
	// Topology is what the driver of the served node reports.
	Served   string
	Topology map[string]string
	// Cached lists the watched nodes; nil if nodes are not watched.
	Cached corelisters.NodeLister
}

// Read returns the current node.
func (s SelectedNodes) Read(ctx context.Context, name string) (*v1.Node, error) {
	switch {
	case !s.HasTopology:
		return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, nil
	case name == s.Served:
		return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: s.Topology}}, nil
	}
	node, err := s.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsForbidden(err) && s.Cached != nil { // upstream's role may watch nodes, not read them
		return s.Cached.Get(name)
	}
	return node, err
}

// FromCache returns the cached node, nil if the cache lacks the node or nodes are not
// watched.
func (s SelectedNodes) FromCache(name string) *v1.Node {
	if s.Cached == nil {
		return nil
	}
	node, err := s.Cached.Get(name)
	if err != nil {
		return nil
	}
	return node
}

// ServedNode returns caches of Nodes and CSINodes that hold the served node only, with the
// topology that the driver reports. The informers are never started, so that their
// handlers are never called.
func ServedNode(driver, node string,
	topology map[string]string) (nodes, csiNodes cache.SharedIndexInformer, err error) {
	served := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: node, Labels: topology}}
	registered := storagev1.CSINodeDriver{Name: driver, NodeID: node, TopologyKeys: slices.Sorted(maps.Keys(topology))}
	csiNode := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: node},
		Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{registered}}}
	nodes = cache.NewSharedIndexInformer(&cache.ListWatch{}, served, 0, cache.Indexers{})
	csiNodes = cache.NewSharedIndexInformer(&cache.ListWatch{}, csiNode, 0, cache.Indexers{})
	if err := nodes.GetStore().Add(served); err != nil {
		return nil, nil, fmt.Errorf("cache node: %w", err)
	}
	if err := csiNodes.GetStore().Add(csiNode); err != nil {
		return nil, nil, fmt.Errorf("cache CSI node: %w", err)
	}
	return nodes, csiNodes, nil
}
