package volume

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/topology"
)

// nodeFlag makes a provisioner serve the volumes of its own node only.
const nodeFlag = "node-deployment"

// RunsPerNode reports whether the program runs on each node and deletes the volumes of that
// node only.
func (p Program) RunsPerNode() bool {
	runs := false
	for _, arg := range p.Args {
		name, value, has := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if name != nodeFlag || !strings.HasPrefix(arg, "-") {
			continue
		}
		on, err := strconv.ParseBool(value)
		runs = !has || err == nil && on
	}
	return runs
}

// NodeOf returns whether a node that reaches the volume can delete its disk: Yes if such a node
// is ready, No if none exists. seen: all nodes were listed.
func NodeOf(affinity *corev1.VolumeNodeAffinity, nodes []corev1.Node, seen bool) Fact {
	exists := false
	for i := range nodes {
		if !topology.Reaches(nodes[i].Labels, affinity) {
			continue
		}
		if exists = true; isReady(&nodes[i]) {
			return Yes
		}
	}
	if exists || !seen {
		return Unseen
	}
	return No
}

func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
