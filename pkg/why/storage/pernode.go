package storage

import (
	"context"
	"slices"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/blocker/volume"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/holder"
)

// observeNode finds out whether the node of the volume exists, if the provisioner runs on each
// node: no other node deletes the disk. What a program says of which nothing tells the driver
// is no proof.
func (r *reclaimed) observeNode(ctx context.Context) {
	r.state.Node = volume.Yes
	running := programs(r.finding, serves)
	guessed := len(running) == 0
	if guessed {
		running = programs(r.finding, func(container holder.Container) bool { return container.Guessed })
	}
	central := slices.ContainsFunc(running, func(p volume.Program) bool { return !p.RunsPerNode() })
	if len(running) == 0 || central {
		return
	}
	nodes, seen := cluster.List(ctx, r.Reader(), cluster.Nodes, cluster.Selection{})
	r.state.Node = volume.NodeOf(r.typed.Spec.NodeAffinity, nodes, seen && !guessed)
}

// nodeGone completes the blocker of a volume whose node does not exist.
func (r *reclaimed) nodeGone(b *blocker.Blocker) {
	b.Holder = "the administrator of the node of the volume"
	b.Evidence = append(b.Evidence, evidence(blocker.FromList,
		"the provisioner runs with --node-deployment, on each node for the volumes of that node, and no node fits spec.nodeAffinity of the volume"))
	b.Next = cluster.Steps("bring the node of the volume back", r.Commands().Kubectl("", "get", "pv", r.typed.Name, "-o", "jsonpath={.spec.nodeAffinity}"))
	if last := r.Holders().RemovalStep(r.object, r.finalizer, "only if the node never comes back: its disk is not deleted, and no object tells of it any more"); last != "" {
		b.Next += "\n" + last
	}
}
