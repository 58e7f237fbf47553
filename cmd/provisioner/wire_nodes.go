package main

import (
	"fmt"

	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/provisioner/nodes"
)

// nodes returns the caches of Nodes, with labels only, and of CSINodes. With
// --node-deployment nothing is watched.
func (w *wiring) nodes() (cached, registered cache.SharedIndexInformer, err error) {
	if w.options.node.enabled {
		return nodes.Served(w.driver.Name(), w.options.node.name(), w.topology)
	}
	cached, registered = w.factory.Core().V1().Nodes().Informer(), w.factory.Storage().V1().CSINodes().Informer()
	if err := cached.SetTransform(controller.TrimNode); err != nil {
		return nil, nil, fmt.Errorf("watch nodes: %w", err)
	}
	return cached, registered, nil
}

// selectedNodes returns the reader of the nodes that the scheduler selects.
func (w *wiring) selectedNodes() nodes.Selected {
	selected := nodes.Selected{Client: w.clients.Objects, HasTopology: w.driver.HasTopology(), Served: w.options.node.name(), Topology: w.topology}
	if selected.HasTopology && selected.Served == "" {
		selected.Cached = w.factory.Core().V1().Nodes().Lister()
	}
	return selected
}
