package main

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// nodes are the caches of Nodes, of which labels are kept, and of CSINodes. With
// --node-deployment nothing is watched: the caches hold the one node that is served,
// as the driver describes it, and what watches them is never called.
func (w *wiring) nodes() (nodes, registered cache.SharedIndexInformer, err error) {
	if w.options.node.enabled {
		return w.ownNode()
	}
	nodes, registered = w.factory.Core().V1().Nodes().Informer(), w.factory.Storage().V1().CSINodes().Informer()
	if err := nodes.SetTransform(controller.TrimNode); err != nil {
		return nil, nil, fmt.Errorf("watch nodes: %w", err)
	}
	return nodes, registered, nil
}

func (w *wiring) ownNode() (nodes, registered cache.SharedIndexInformer, err error) {
	name := w.options.node.name()
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: w.topology}}
	driver := storagev1.CSINodeDriver{Name: w.driver.Name(), NodeID: name, TopologyKeys: slices.Sorted(maps.Keys(w.topology))}
	there := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{driver}}}
	nodes = cache.NewSharedIndexInformer(&cache.ListWatch{}, node, 0, cache.Indexers{})
	registered = cache.NewSharedIndexInformer(&cache.ListWatch{}, there, 0, cache.Indexers{})
	if err := nodes.GetStore().Add(node); err != nil {
		return nil, nil, fmt.Errorf("keep the node: %w", err)
	}
	if err := registered.GetStore().Add(there); err != nil {
		return nil, nil, fmt.Errorf("keep the CSI node: %w", err)
	}
	return nodes, registered, nil
}
