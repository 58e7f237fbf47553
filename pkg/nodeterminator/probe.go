package nodeterminator

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/nodeterminator/instances"
	"github.com/exeunt-io/exeunt/pkg/nodeterminator/machine"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/termination/node"
)

// probe asks about the machine of a node that lives, until the provider says once that it runs. Later, an answer Gone
// counts only of such a machine: the account or the ID may be wrong.
type probe struct {
	machine    *machine.Machine
	providerID string
}

func isRunning(v machine.View) bool { return v.State == instances.Running }

// probe begins or ends the probe of a node that is not being deleted.
func (c *Controller) probe(n *v1.Node, o *observation) {
	wanted := c.Provider == node.Socket && o.state.Owner == node.Ours && o.state.Protected && !wasSeen(n) &&
		!o.state.Deleting
	c.mu.Lock()
	p := c.probes[n.Name]
	if wanted && p != nil && p.providerID == n.Spec.ProviderID {
		c.mu.Unlock()
		return
	}
	if wanted {
		c.probes[n.Name] = &probe{providerID: n.Spec.ProviderID, machine: machine.New(c.ctx, c.Instances, instanceOf(n),
			false, func() { c.loop.Enqueue(n.Name) })}
	} else {
		delete(c.probes, n.Name)
	}
	c.mu.Unlock()
	if p != nil {
		p.machine.End()
	}
}

// endProbe ends the probe of a node.
func (c *Controller) endProbe(name string) {
	c.mu.Lock()
	p := c.probes[name]
	delete(c.probes, name)
	c.mu.Unlock()
	if p != nil {
		p.machine.End()
	}
}

// noteSeen writes down that the provider knows the machine of a node that lives.
func (c *Controller) noteSeen(ctx context.Context, n *v1.Node) error {
	c.mu.Lock()
	p := c.probes[n.Name]
	c.mu.Unlock()
	if p == nil || !isRunning(p.machine.View()) || wasSeen(n) {
		return nil
	}
	return c.patch(ctx, n, nil, patch.ForVersion(n).Annotate(n,
		map[string]string{termination.InstanceAnnotation: n.Spec.ProviderID}))
}
