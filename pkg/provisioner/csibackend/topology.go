package csibackend

import (
	"context"
	"fmt"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/topology"
)

// topology returns the required topology of the volume. The selected node was read live;
// all other nodes come from the cache.
func (i *Inputs) topology(ctx context.Context, in provision.Input, selected *v1.Node) (*spec.TopologyRequirement, error) {
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
