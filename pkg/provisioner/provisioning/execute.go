package provisioning

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	library "sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/provisioner/backend"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// errLeaseEnding: the leader lease ends too soon for a call.
var errLeaseEnding = errors.New("the leader lease ends soon and was not renewed; the driver is not called")

var errNodeGone = errors.New("the selected node no longer exists")

// execute executes one action and returns the next observation, nil if the pass ends.
func (c *Controller) execute(ctx context.Context, o *observation, s provision.State, decision provision.Decision) (*observation, error) {
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
func (c *Controller) executeOnJournal(ctx context.Context, o *observation, s provision.State, decision provision.Decision) (*observation, error) {
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

// updateRecord changes the record of the claim.
func (c *Controller) updateRecord(o *observation, change func(*claimRecord)) {
	c.memory.update(o.subject(), o.name, change)
}

// prepare builds the request. An unsuitable selected node is recorded as unfit.
func (c *Controller) prepare(ctx context.Context, o *observation, s provision.State) (*observation, error) {
	planned, err := c.buildPlan(ctx, o)
	after := *o
	switch {
	case err == nil:
		after.plan, after.cause, after.err = c.orOlderPlan(o, planned), provision.NoCause, nil
	case errors.Is(err, errNodeGone):
		c.countPass(o, err)
	case (!c.isPerNode() || !isOpen(s.Creation)) && provision.GivesUpNode(s, isUnsuitable(err)):
		c.updateRecord(o, func(r *claimRecord) { r.claim.unfit = o.claim.Annotations[storage.AnnSelectedNode] })
		c.countPass(o, err)
		_ = c.reportFailure(o, c.userError(o, err, false)) // the next step reports the reason
	default:
		after.cause, after.err = causeOf(err), err
	}
	return &after, nil
}

// causeOf returns the cause for an error of Prepare.
func causeOf(err error) provision.Cause {
	var other *provision.LeftToOther
	switch {
	case !errors.As(err, &other):
		return provision.RequestFailed
	case other.Sentence == "":
		return provision.OtherProvisionerUnnamed
	}
	return provision.OtherProvisioner
}

// useStored plans the last request again. It plans a superseded request only if no call is
// open, or if the driver has no volume, or if an unwanted call is open for long: each change of the request
// restarts openedAt.
func (c *Controller) useStored(o *observation, s provision.State) *observation {
	after := *o
	after.plan, after.cause, after.err = o.record.request.plan, provision.NoCause, nil
	if !isOpen(s.Creation) || s.Creation == provision.FailedOnce || s.LongRequested && s.Want != provision.Wanted {
		after.plan = c.orAlternative(o.record.request.plan, o.record)
	}
	if s.Want == provision.Wanted && c.retains(o.claim) {
		after.plan = after.plan.retained(c.Honor)
	}
	return &after
}

// orOlderPlan returns the new plan, or a superseded one if the new plan repeats a request
// with a doubtful outcome.
func (c *Controller) orOlderPlan(o *observation, built *plan) *plan {
	if o.record.request.creation == provision.Doubtful && built.equals(o.record.entry.stored) {
		return c.orAlternative(built, o.record)
	}
	return built
}

// buildPlan builds the plan for the current selected node. It returns errNodeGone if the
// node is gone.
func (c *Controller) buildPlan(ctx context.Context, o *observation) (*plan, error) {
	if err := c.qualify(ctx, o); err != nil {
		return nil, err
	}
	if built := c.planForWatched(ctx, o); built != nil {
		return built, nil
	}
	node, err := c.selectedNode(ctx, o)
	if err != nil {
		return nil, err
	}
	return c.planFor(ctx, o, node)
}

// qualify returns [provision.LeftToOther] for a claim that the backend leaves to another provisioner: neither its class nor
// its node is looked at then.
func (c *Controller) qualify(ctx context.Context, o *observation) error {
	qualifier, ok := c.Backend.(backend.Qualifier)
	if !ok {
		return nil
	}
	switch qualifies, err := qualifier.Qualifies(ctx, o.claim); {
	case err != nil:
		return err
	case !qualifies:
		return &provision.LeftToOther{}
	}
	return nil
}

func isUnsuitable(err error) bool {
	var elsewhere *provision.UnsuitableNode
	return errors.As(err, &elsewhere)
}

func (c *Controller) planFor(ctx context.Context, o *observation, node *v1.Node) (*plan, error) {
	class := c.classOf(o.claim)
	switch {
	case class == nil:
		return nil, fmt.Errorf("storageclass.storage.k8s.io %q not found", storage.ClaimClass(o.claim))
	case !c.Scope.Serves(class.Provisioner):
		return nil, &provision.Refusal{Sentence: fmt.Sprintf("The storage class %q is now of the provisioner %q", class.Name, class.Provisioner)}
	}
	request, volume, err := c.Backend.Prepare(ctx, library.ProvisionOptions{StorageClass: class, PVName: o.name, PVC: o.claim, SelectedNode: node})
	if err != nil {
		return nil, err
	}
	provision.NewAssignment(o.claim, class).ApplyTo(volume, c.Honor)
	return &plan{request: request, volume: volume, selected: o.claim.Annotations[storage.AnnSelectedNode], class: class.Name}, nil
}

// planForWatched builds the first request for a claim with the cached node, which saves a
// live read. It returns nil if the node must be read live: if the claim must be too, or if
// the request cannot be built, perhaps because the cached node lacks new labels.
func (c *Controller) planForWatched(ctx context.Context, o *observation) *plan {
	name := o.claim.Annotations[storage.AnnSelectedNode]
	if name == "" || !c.isFresh(o) {
		return nil
	}
	node := c.Nodes.FromCache(name)
	if node == nil {
		return nil
	}
	built, err := c.planFor(ctx, o, node)
	if err != nil {
		return nil
	}
	return built
}

// selectedNode returns the node that the scheduler selected, nil if none is selected. A
// deleted node is recorded as unfit, and the error is errNodeGone.
func (c *Controller) selectedNode(ctx context.Context, o *observation) (*v1.Node, error) {
	name := o.claim.Annotations[storage.AnnSelectedNode]
	if name == "" {
		return nil, nil
	}
	node, exists, err := answer.Get(ctx, name, func(ctx context.Context, name string, _ metav1.GetOptions) (*v1.Node, error) {
		return c.Nodes.Read(ctx, name)
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("failed to get target node: read node %s: %w", name, err)
	case !exists:
		c.updateRecord(o, func(r *claimRecord) { r.claim.unfit = name })
		return nil, c.reportFailure(o, fmt.Errorf("nodes %q not found: %w", name, errNodeGone))
	}
	return node, nil
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

// readClaim reads the claim from the API server.
func (c *Controller) readClaim(ctx context.Context, o *observation) (*observation, error) {
	claim, err := controller.ReadLive(ctx, "claim", o.claim.Name, c.Client.CoreV1().PersistentVolumeClaims(o.claim.Namespace).Get)
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
	if cached := controller.Lookup[*v1.PersistentVolume](c.Volumes, o.name); volume == nil && storage.RecordOf(cached, o.claim.UID) == storage.RecordPresent {
		return nil, fmt.Errorf("volume %s no longer exists: %w", o.name, controller.ErrStaleCache) // later steps read the cache
	}
	c.updateRecord(o, func(r *claimRecord) {
		r.object.conflict = storage.RecordOf(volume, o.claim.UID) == storage.RecordConflict
	})
	after.volume, after.read = volume, provision.BothRead
	return after, nil
}

// reschedule removes the selected node from the claim, so that the scheduler selects again.
// The patch fails if the scheduler has already selected another node.
func (c *Controller) reschedule(ctx context.Context, o *observation) (*observation, error) {
	path := "/metadata/annotations/" + patch.Escape(storage.AnnSelectedNode)
	change := patch.For(o.claim).Test(path, o.claim.Annotations[storage.AnnSelectedNode]).Remove(path)
	claim, err := c.writer.PatchClaim(ctx, o.claim, change)
	switch {
	case errors.Is(err, controller.ErrGone):
		return nil, nil
	case err != nil:
		return nil, c.reportRefusal(o, fmt.Errorf("remove the selected node %q from the claim: %w", o.claim.Annotations[storage.AnnSelectedNode], err))
	}
	if o.record.request.creation == provision.Requested {
		c.reportUnanswered(o)
	}
	klog.FromContext(ctx).V(2).Info("The scheduler selects another node for the claim", "unfit", o.claim.Annotations[storage.AnnSelectedNode])
	c.updateRecord(o, func(r *claimRecord) { r.claim.unfit = "" })
	return o.next(claim), nil
}
