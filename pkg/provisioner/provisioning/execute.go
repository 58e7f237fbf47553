package provisioning

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// execute executes one action and returns the next observation, nil if the pass ends.
func (c *Controller) execute(ctx context.Context, o *observation, s provision.State,
	decision provision.Decision) (*observation, error) {
	switch decision.Action {
	case provision.Prepare:
		return c.prepare(ctx, o, s)
	case provision.UseStored:
		return c.useStored(o, s), nil
	case provision.ReadClaim:
		return c.readClaim(ctx, o)
	case provision.ReadBoth:
		return c.readBoth(ctx, o)
	case provision.ReadNode:
		return c.readNode(ctx, o)
	case provision.Create:
		return c.create(ctx, o, s)
	case provision.Save:
		return c.save(ctx, o)
	case provision.AcceptRecord:
		return c.acceptRecord(o), nil
	case provision.Discard:
		return c.discard(ctx, o)
	case provision.Reschedule:
		return c.reschedule(ctx, o)
	default:
		return c.executeOnJournal(ctx, o, s, decision)
	}
}

// executeOnJournal executes an action on the claim's journal entry.
func (c *Controller) executeOnJournal(ctx context.Context, o *observation, s provision.State,
	decision provision.Decision) (*observation, error) {
	switch decision.Action {
	case provision.Adopt:
		return c.adopt(ctx, o)
	case provision.WriteEntry:
		return c.writeEntry(ctx, o, s)
	case provision.WriteDiscarding:
		return c.writeDiscarding(ctx, o, s)
	case provision.Announce:
		return c.announce(ctx, o, s)
	case provision.RemoveEntry:
		return c.removeEntry(ctx, o, s, decision.Reason)
	case provision.MoveToUnresolved:
		return c.moveToUnresolved(ctx, o, s, decision.Reason)
	default:
		return nil, nil
	}
}

// readBoth reads the claim and the PersistentVolume with the claim's volume name.
func (c *Controller) readBoth(ctx context.Context, o *observation) (*observation, error) {
	after, err := c.readClaim(ctx, o)
	if err != nil {
		return nil, err
	}
	volume, err := controller.ReadLive(ctx, "volume", o.name, c.Client.CoreV1().PersistentVolumes().Get)
	if err != nil {
		return nil, err
	}
	cached := controller.Lookup[*v1.PersistentVolume](c.Volumes, o.name)
	if volume == nil && storage.RecordOf(cached, o.claim.UID) == storage.RecordPresent {
		// Later steps read the cache. It had the PersistentVolume of a claim that was never bound, deleted before
		// this process led: the volume counted as recorded, the entry of the open request was removed, and the
		// disk of a claim that is gone was forgotten.
		return nil, fmt.Errorf("volume %s no longer exists: %w", o.name, controller.ErrStaleCache)
	}
	c.updateRecord(o, func(r *claimRecord) {
		r.object.conflict = storage.RecordOf(volume, o.claim.UID) == storage.RecordConflict
	})
	after.volume, after.read = volume, provision.BothRead
	return after, nil
}

// readClaim reads the claim from the API server, before each CreateVolume. A late watch showed a claim that was
// gone and forgotten as a new one: CreateVolume found the disk that its user had kept with the policy Retain, the
// disk was recorded with the policy Delete of the class, and deleted (soak, seed 306; decision 21).
func (c *Controller) readClaim(ctx context.Context, o *observation) (*observation, error) {
	claims := c.Client.CoreV1().PersistentVolumeClaims(o.claim.Namespace)
	claim, err := controller.ReadLive(ctx, "claim", o.claim.Name, claims.Get)
	if err != nil {
		return nil, fmt.Errorf("namespace %s: %w", o.claim.Namespace, err)
	}
	after := o.next(claim)
	if after.gone = claim == nil || claim.UID != o.claim.UID; after.gone {
		after.claim = o.claim
	}
	after.read = provision.ClaimRead
	return after, nil
}

// readNode reads the selected node from the API server.
func (c *Controller) readNode(ctx context.Context, o *observation) (*observation, error) {
	if _, err := c.selectedNode(ctx, o); err != nil && !errors.Is(err, errNodeGone) {
		return nil, err
	}
	after := *o
	after.nodeRead = true
	return &after, nil
}

// reschedule removes the selected node from the claim, so that the scheduler selects again.
// The patch fails if the scheduler has already selected another node.
func (c *Controller) reschedule(ctx context.Context, o *observation) (*observation, error) {
	node, path := o.claim.Annotations[storage.AnnSelectedNode],
		"/metadata/annotations/"+patch.Escape(storage.AnnSelectedNode)
	change := patch.For(o.claim).Test(path, node).Remove(path)
	claim, err := c.writer.PatchClaim(ctx, o.claim, change)
	switch {
	case errors.Is(err, controller.ErrGone):
		return nil, nil
	case err != nil:
		return nil, c.reportRefusal(o, fmt.Errorf("remove the selected node %q from the claim: %w", node, err))
	}
	if o.record.request.creation == provision.Requested {
		c.reportUnanswered(o)
	}
	klog.FromContext(ctx).V(2).Info("The scheduler selects another node for the claim", "unfit", node)
	c.updateRecord(o, func(r *claimRecord) { r.claim.unfit = "" })
	return o.next(claim), nil
}

// reportRefusal reports a refused or undone write of the claim, and returns the error.
func (c *Controller) reportRefusal(o *observation, err error) error {
	if !controller.IsRefusal(err) {
		return err
	}
	c.countPass(o, err)
	return c.reportFailure(o, err)
}

// reportUnanswered reports that another node is selected although a request has no answer. A driver that finds
// the volume by its name returns it for the next node; another one leaves it behind.
func (c *Controller) reportUnanswered(o *observation) {
	c.Reporter.Report(o.claim, controller.WarningEvent(provisioningCleanupFailed, fmt.Sprintf(
		"The driver has not answered whether it created volume %s for node %q, and another node is selected; "+
			"a volume in the storage of that node would be left alone", o.name, o.record.claim.node)))
}
