package csibackend

import (
	"context"
	"fmt"
	"sync"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/topology"
)

// nodePool has the nodes of the caches in a [topology.Pool], which their events update.
type nodePool struct {
	driver            string
	nodes, registered cache.SharedIndexInformer
	// synced report whether the pool has every node of the first lists; nil for a pool
	// without events.
	synced []cache.InformerSynced

	mu   sync.Mutex
	pool *topology.Pool
}

// newNodePool registers the event handlers, on standby too, so that the pool is ready when
// this process begins to lead.
func newNodePool(driver string, nodes, registered cache.SharedIndexInformer) *nodePool {
	p := &nodePool{driver: driver, nodes: nodes, registered: registered, pool: topology.NewPool()}
	ofNodes, err := nodes.AddEventHandler(controller.OnChange(
		func(_, node *v1.Node) { p.update(node.Name) }, func(node *v1.Node) { p.update(node.Name) }))
	if err != nil { // the informer has stopped
		return p
	}
	ofRegistered, err := registered.AddEventHandler(controller.OnChange(
		func(_, node *storagev1.CSINode) { p.update(node.Name) }, func(node *storagev1.CSINode) { p.update(node.Name) }))
	if err != nil {
		return p
	}
	p.synced = []cache.InformerSynced{ofNodes.HasSynced, ofRegistered.HasSynced}
	return p
}

// update reads a node from the caches again. The caches are read under the lock, so that the
// later of two events never sees older objects than the earlier.
func (p *nodePool) update(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	node := controller.Lookup[*v1.Node](p.nodes, name)
	if node == nil {
		p.pool.Remove(name)
		return
	}
	p.pool.Set(p.topologyOf(node))
}

// except returns the nodes that requirements depend on, without the named one: from the
// pool, or from the caches before the pool has synced.
func (p *nodePool) except(name string) []topology.Node {
	if p.hasSynced() {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.pool.Except(name)
	}
	var all []topology.Node
	for _, object := range p.nodes.GetStore().List() {
		if node, ok := object.(*v1.Node); ok && node.Name != name {
			all = append(all, p.topologyOf(node))
		}
	}
	return all
}

func (p *nodePool) hasSynced() bool {
	for _, synced := range p.synced {
		if !synced() {
			return false
		}
	}
	return len(p.synced) > 0
}

func (p *nodePool) topologyOf(node *v1.Node) topology.Node {
	registered := controller.Lookup[*storagev1.CSINode](p.registered, node.Name)
	return topology.Node{Name: node.Name, Labels: node.Labels, Keys: keysOf(registered, p.driver)}
}

// topology returns the required topology of the volume. The selected node was read live;
// all other nodes come from the cache.
func (i *Inputs) topology(ctx context.Context, in provision.Input,
	selected *v1.Node) (*spec.TopologyRequirement, error) {
	if !in.Driver.Topology || i.Nodes == nil {
		return nil, nil
	}
	wanted := topology.Input{
		ClaimName: in.Claim.Name, Allowed: in.Class.AllowedTopologies,
		Strict: i.StrictTopology, Immediate: i.ImmediateTopology,
	}
	if selected != nil {
		driver, err := i.driverOn(ctx, selected.Name)
		if err != nil {
			return nil, err
		}
		wanted.Selected = &topology.Node{Name: selected.Name, Labels: selected.Labels, Keys: keysOf(driver, in.Driver.Name)}
	}
	if wanted.NeedsNodes() {
		except := ""
		if selected != nil {
			except = selected.Name
		}
		wanted.Nodes = i.pool.except(except)
	}
	requirement, err := topology.Requirement(wanted)
	if err != nil {
		return nil, fmt.Errorf("choose where the volume is to be: %w", err)
	}
	return requirement, nil
}

// driverOn returns the CSINode of a selected node: from the cache if the driver is
// registered there, for a driver registers itself once.
func (i *Inputs) driverOn(ctx context.Context, node string) (*storagev1.CSINode, error) {
	if known := controller.Lookup[*storagev1.CSINode](i.CSINodes, node); len(keysOf(known, i.Driver.Name())) > 0 {
		return known, nil
	}
	drivers, err := controller.ReadLive(ctx, "CSINode", node, i.Client.StorageV1().CSINodes().Get)
	switch {
	case err != nil:
		return nil, err
	case drivers == nil:
		return nil, &provision.UnsuitableNode{Sentence: fmt.Sprintf("No CSI driver has registered itself on the selected node %s: it has no CSINode", node)}
	}
	return drivers, nil
}

// keysOf returns the topology keys that the driver has registered on a node.
func keysOf(node *storagev1.CSINode, driver string) []string {
	if node == nil {
		return nil
	}
	for _, registered := range node.Spec.Drivers {
		if registered.Name == driver {
			return registered.TopologyKeys
		}
	}
	return nil
}
