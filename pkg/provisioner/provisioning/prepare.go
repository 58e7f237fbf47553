package provisioning

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	library "sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/provisioner/backend"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

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

var errNodeGone = errors.New("the selected node no longer exists")

// useStored plans the last request again. It plans a superseded request only if no call is
// open, or if the driver has no volume, or if an unwanted call is open for long: each change of the request
// restarts openedAt. That the last request failed says nothing of an earlier one without an answer, whose disk
// was once left behind.
func (c *Controller) useStored(o *observation, s provision.State) *observation {
	after := *o
	after.plan, after.cause, after.err = o.record.request.plan, provision.NoCause, nil
	if !isOpen(s.Creation) || s.Creation == provision.FailedOnce || s.LongRequested && s.Want != provision.Wanted {
		after.plan = c.orAlternative(o.record.request.plan, o.record)
	}
	if s.Want == provision.Wanted && c.retains(o.claim) {
		// An administrator replaces a class to change its policy. A request that was open meanwhile was recorded
		// with the policy Delete of the old class, so that the data went with its claim.
		after.plan = after.plan.retained(c.Honor)
	}
	return &after
}

// retains reports whether the claim's class, which may be a new one of its name, says now
// that volumes are kept.
func (c *Controller) retains(claim *v1.PersistentVolumeClaim) bool {
	class := c.classOf(claim)
	return class != nil && c.Scope.Serves(class.Provisioner) &&
		ptr.Deref(class.ReclaimPolicy, v1.PersistentVolumeReclaimDelete) == v1.PersistentVolumeReclaimRetain
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

// orOlderPlan returns the new plan, or a superseded one if the new plan repeats a request
// with a doubtful outcome.
func (c *Controller) orOlderPlan(o *observation, built *plan) *plan {
	if o.record.request.creation == provision.Doubtful && built.equals(o.record.entry.stored) {
		return c.orAlternative(built, o.record)
	}
	return built
}

// orAlternative returns the plan with the last or a superseded request, in turn, by the
// number of mismatches so far.
func (c *Controller) orAlternative(p *plan, r claimRecord) *plan {
	number := r.request.answers.alternatives % (len(r.entry.superseded) + 1)
	if number == 0 {
		return p
	}
	request, err := c.Backend.Restore(r.entry.superseded[number-1], p.secret())
	if err != nil { // cannot happen: planFrom rejects such an entry
		return p
	}
	other := *p
	other.request, other.alternative = request, true
	return &other
}

// qualify returns [provision.LeftToOther] for a claim that the backend leaves to another provisioner: neither
// its class nor its node is looked at then.
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
	read := func(ctx context.Context, name string, _ metav1.GetOptions) (*v1.Node, error) {
		return c.Nodes.Read(ctx, name)
	}
	node, exists, err := answer.Get(ctx, name, read)
	switch {
	case err != nil:
		return nil, fmt.Errorf("failed to get target node: read node %s: %w", name, err)
	case !exists:
		c.updateRecord(o, func(r *claimRecord) { r.claim.unfit = name })
		return nil, c.reportFailure(o, fmt.Errorf("nodes %q not found: %w", name, errNodeGone))
	}
	return node, nil
}

// planFor builds the plan for the node, nil for none.
func (c *Controller) planFor(ctx context.Context, o *observation, node *v1.Node) (*plan, error) {
	class := c.classOf(o.claim)
	switch {
	case class == nil:
		return nil, fmt.Errorf("storageclass.storage.k8s.io %q not found", storage.ClaimClass(o.claim))
	case !c.Scope.Serves(class.Provisioner):
		sentence := fmt.Sprintf("The storage class %q is now of the provisioner %q", class.Name, class.Provisioner)
		return nil, &provision.Refusal{Sentence: sentence}
	}
	options := library.ProvisionOptions{StorageClass: class, PVName: o.name, PVC: o.claim, SelectedNode: node}
	request, volume, err := c.Backend.Prepare(ctx, options)
	if err != nil {
		return nil, err
	}
	provision.NewAssignment(o.claim, class).ApplyTo(volume, c.Honor)
	selected := o.claim.Annotations[storage.AnnSelectedNode]
	return &plan{request: request, volume: volume, selected: selected, class: class.Name}, nil
}

func isUnsuitable(err error) bool {
	var elsewhere *provision.UnsuitableNode
	return errors.As(err, &elsewhere)
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
