package nodeterminator

import (
	"context"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/deadline"
)

const (
	// karpenterFinalizer is on each Node that Karpenter terminates, karpenterPool is the label of its nodes.
	karpenterFinalizer = "karpenter.sh/termination"
	karpenterPool      = "karpenter.sh/nodepool"
)

// Claims are the NodeClaims of the cluster.
type Claims struct{}

// claim is a NodeClaim of ours.
type claim struct{}

func (*claim) period() (deadline.Period, error) { return deadline.Period{}, nil }
func (*claim) requested() time.Time             { return time.Time{} }

func (c *Claims) onChange(func(node string)) {}

// of returns the claim of ours for the node, and whether the node is another program's.
func (c *Claims) of(n *v1.Node) (own *claim, others bool) {
	_, pooled := n.Labels[karpenterPool]
	return nil, pooled || slices.Contains(n.Finalizers, karpenterFinalizer)
}

func (c *Controller) releaseClaim(context.Context, *v1.Node) error { return nil }
