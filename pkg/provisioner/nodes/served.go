package nodes

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// Served returns caches of Nodes and CSINodes that hold the served node only, with the
// topology that the driver reports. The informers are never started, so that their
// handlers are never called.
func Served(driver, node string, topology map[string]string) (nodes, csiNodes cache.SharedIndexInformer, err error) {
	served := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: node, Labels: topology}}
	registered := storagev1.CSINodeDriver{Name: driver, NodeID: node, TopologyKeys: slices.Sorted(maps.Keys(topology))}
	csiNode := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{registered}}}
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
