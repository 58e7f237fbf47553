package provisioning

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	library "sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// errLeaseEnding: the driver is not called so shortly before another process may lead.
var errLeaseEnding = errors.New("the leader lease ends soon and was not renewed; the driver is not called")

var errNodeGone = errors.New("the selected node no longer exists")

// execute carries out one action and returns what is known afterwards, or nil if
// nothing is left to be done now.
func (c *Controller) execute(ctx context.Context, o *observation, s provision.State, action provision.Action) (*observation, error) {
	switch action {
	case provision.Prepare:
		return c.prepare(ctx, o, s)
	case provision.ReadClaim:
		return c.readClaim(ctx, o)
	case provision.ReadBoth:
		return c.readBoth(ctx, o)
	case provision.Adopt:
		return c.adopt(ctx, o)
	case provision.WriteEntry:
		return c.writeEntry(ctx, o, s)
	case provision.WriteDiscarding:
		return c.writeDiscarding(ctx, o)
	case provision.Create:
		return c.create(ctx, o, s)
	case provision.Save:
		return c.save(ctx, o)
	case provision.Discard:
		return c.discard(ctx, o)
	case provision.Strike:
		return c.strike(ctx, o, s)
	case provision.SetApart:
		return c.setApart(ctx, o, s)
	case provision.RemoveOldFinalizer:
		return c.removeOldFinalizer(ctx, o)
	case provision.Reschedule:
		return c.reschedule(ctx, o)
	case provision.Wait:
	}
	return nil, nil
}

// note changes what is known of the claim.
func (c *Controller) note(o *observation, change func(*claimRecord)) {
	c.memory.note(o.subject(), o.name, change)
}

// prepare builds the request, or takes the last one while that must be repeated:
// nothing that has changed since must stop the cleanup of a volume.
func (c *Controller) prepare(ctx context.Context, o *observation, s provision.State) (*observation, error) {
	after := *o
	r, _ := c.memory.of(o.claim.UID)
	if r.plan != nil && (s.Want != provision.Wanted || r.isOpen() && !s.Lasting) {
		after.plan = c.orAlternative(r.plan, r)
		return &after, nil
	}
	if c.serverOf(o.claim, r) == provision.NoProcess {
		after.refused = errors.New("no node is selected for the claim")
		return &after, nil
	}
	if after.plan = c.planForWatched(ctx, o, s); after.plan != nil {
		return &after, nil
	}
	var err error
	after.plan, err = c.planForSelected(ctx, o, s)
	switch {
	case errors.Is(err, errNodeGone):
		c.count(o, err)
		return &after, nil
	case err != nil && r.isOpen() && r.plan != nil:
		after.plan = r.plan
		return &after, nil
	case c.noteUnfit(o, s, err):
		return &after, nil
	case err == nil && r.creation == provision.Doubtful && after.plan.equals(r.stored):
		after.plan = c.orAlternative(after.plan, r)
	}
	after.refused = err
	return &after, nil
}

// planForSelected builds the request with the selected node as it is now. It returns
// errNodeGone if that was noted as unfit.
func (c *Controller) planForSelected(ctx context.Context, o *observation, s provision.State) (*plan, error) {
	node, err := c.selectedNode(ctx, o)
	if err != nil {
		return nil, err
	}
	if node == nil && s.Want == provision.Wanted && c.wantOf(o) != provision.Wanted {
		return nil, errNodeGone
	}
	built, err := c.planFor(ctx, o, node)
	if isElsewhere(err) && s.Want != provision.Wanted {
		return c.planFor(ctx, o, nil)
	}
	return built, err
}

// noteUnfit notes that the selected node is none for the volume, if that is the error.
func (c *Controller) noteUnfit(o *observation, s provision.State, err error) bool {
	if !isElsewhere(err) || s.Want != provision.Wanted {
		return false
	}
	c.note(o, func(r *claimRecord) { r.unfit = o.claim.Annotations[storage.AnnSelectedNode] })
	c.count(o, err)
	_ = c.reportFailure(o, c.sentence(o, err, false)) // it is the reason of what follows
	return true
}

func isElsewhere(err error) bool {
	var elsewhere *provision.Elsewhere
	return errors.As(err, &elsewhere)
}

func (c *Controller) planFor(ctx context.Context, o *observation, node *v1.Node) (*plan, error) {
	class := c.classOf(o.claim)
	switch {
	case class == nil:
		return nil, fmt.Errorf("storageclass.storage.k8s.io %q not found", storage.ClaimClass(o.claim))
	case !c.Serves(class.Provisioner):
		return nil, &provision.Refusal{Sentence: fmt.Sprintf("The storage class %q is now of the provisioner %q", class.Name, class.Provisioner)}
	}
	request, volume, err := c.Backend.Prepare(ctx, library.ProvisionOptions{StorageClass: class, PVName: o.name, PVC: o.claim, SelectedNode: node})
	if err != nil {
		return nil, err
	}
	provision.NewAssignment(o.claim, class).ApplyTo(volume, c.Honor)
	return &plan{request: request, volume: volume, selected: o.claim.Annotations[storage.AnnSelectedNode], class: class.Name}, nil
}

// planForWatched builds the first request for a claim with the selected node as it was
// watched, which saves a live read. It returns nil if the live node is needed: where a
// live read of the claim is needed too, and where the request cannot be built, which
// may be for labels that the cache does not have yet.
func (c *Controller) planForWatched(ctx context.Context, o *observation, s provision.State) *plan {
	r, _ := c.memory.of(o.claim.UID)
	name := o.claim.Annotations[storage.AnnSelectedNode]
	if name == "" || s.Want != provision.Wanted || c.WatchedNode == nil || !c.isFresh(o, r) {
		return nil
	}
	node := c.WatchedNode(name)
	if node == nil {
		return nil
	}
	built, err := c.planFor(ctx, o, node)
	if err != nil {
		return nil
	}
	return built
}

// selectedNode returns the node that the scheduler selected, nil if there is none. One
// that is gone is noted as unfit.
func (c *Controller) selectedNode(ctx context.Context, o *observation) (*v1.Node, error) {
	name := o.claim.Annotations[storage.AnnSelectedNode]
	if name == "" {
		return nil, nil
	}
	node, err := c.Node(ctx, name)
	switch {
	case apierrors.IsNotFound(err):
		c.note(o, func(r *claimRecord) { r.unfit = name })
		_ = c.reportFailure(o, fmt.Errorf("nodes %q not found: %w", name, errNodeGone))
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("failed to get target node: read node %s: %w", name, err)
	}
	return node, nil
}

// readClaim reads the claim from the API server, and its node if the request was
// built earlier.
func (c *Controller) readClaim(ctx context.Context, o *observation) (*observation, error) {
	claim, err := c.Client.CoreV1().PersistentVolumeClaims(o.claim.Namespace).Get(ctx, o.claim.Name, metav1.GetOptions{})
	after := o.next(claim)
	after.gone = apierrors.IsNotFound(err) || err == nil && claim.UID != o.claim.UID
	switch {
	case after.gone:
		after.claim = o.claim
	case err != nil:
		return nil, fmt.Errorf("read claim %s/%s: %w", o.claim.Namespace, o.claim.Name, err)
	}
	after.read = provision.ClaimRead
	if r, _ := c.memory.of(o.claim.UID); r.creation == provision.Open && c.wantOf(after) == provision.Wanted {
		if _, err := c.selectedNode(ctx, after); err != nil {
			return nil, err
		}
	}
	return after, nil
}

// readBoth reads the volume of the claim's name too.
func (c *Controller) readBoth(ctx context.Context, o *observation) (*observation, error) {
	after, err := c.readClaim(ctx, o)
	if err != nil {
		return nil, err
	}
	volume, err := controller.ReadLive(ctx, "volume", o.name, c.Client.CoreV1().PersistentVolumes().Get)
	if err != nil {
		return nil, err
	}
	c.note(o, func(r *claimRecord) { r.nameTaken = storage.RecordOf(volume, o.claim.UID) == storage.RecordConflict })
	after.volume, after.read = volume, provision.BothRead
	return after, nil
}

// removeOldFinalizer removes the finalizer of an earlier version from the claim.
func (c *Controller) removeOldFinalizer(ctx context.Context, o *observation) (*observation, error) {
	if o.refused != nil {
		c.reportGivenUp(o)
	}
	change := finalizer.Change{Remove: []finalizer.Name{finalizer.Provisioning}}
	claim, err := c.writer.PatchClaim(ctx, o.claim, finalizer.Edit(patch.For(o.claim), o.claim, change))
	switch {
	case apierrors.IsNotFound(err):
		after := o.next(o.claim)
		after.gone = true
		return after, nil
	case err != nil:
		return nil, err
	}
	after := o.next(claim)
	after.gone = claim.DeletionTimestamp != nil && len(claim.Finalizers) == 0
	return after, nil
}

// reschedule has the scheduler select another node, unless it has already.
func (c *Controller) reschedule(ctx context.Context, o *observation) (*observation, error) {
	path := "/metadata/annotations/" + patch.Escape(storage.AnnSelectedNode)
	change := patch.For(o.claim).Test(path, o.claim.Annotations[storage.AnnSelectedNode]).Remove(path)
	claim, err := c.writer.PatchClaim(ctx, o.claim, change)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	klog.FromContext(ctx).V(2).Info("The scheduler selects another node for the claim", "unfit", o.claim.Annotations[storage.AnnSelectedNode])
	c.note(o, func(r *claimRecord) { r.unfit = "" })
	return o.next(claim), nil
}

// wait reports what the claim waits for. An error is returned for what another try
// may change.
func (c *Controller) wait(o *observation, s provision.State, reason provision.Reason) error {
	switch {
	case reason == provision.RequestRefused:
		return c.refused(o, s)
	case reason == provision.NameTaken:
		err := fmt.Errorf("the name %s of the claim's volume is taken by another volume; delete that one to have the claim served", o.name)
		c.count(o, err)
		return c.reportFailure(o, err)
	case reason == provision.LeaseEnding:
		return errLeaseEnding
	case reason == provision.NotWanted: // a change of the claim or its class wakes it
	case o.failure != nil && !done(s):
		return c.waitAfterFailure(o, s)
	case s.Called && !done(s) && s.Record != storage.RecordPresent:
		c.loop.EnqueueAfter(o.subject().key, c.Backoff.Initial)
	}
	c.rest(o, s)
	return nil
}

// rest ends a pass over a claim that waits for events, and forgets what is done.
func (c *Controller) rest(o *observation, s provision.State) {
	r, _ := c.memory.of(o.claim.UID)
	if s.Record == storage.RecordPresent && r.saved && !r.seen {
		c.loop.EnqueueAfter(o.subject().key, c.Patience.Unseen)
	}
	if done(s) || s.Want == provision.Unserved && c.serverOf(o.claim, r) == provision.OtherProcess {
		c.memory.forget(o.claim.UID, o.name)
	}
	if o.gone {
		c.Reporter.Forget(o.claim.UID)
	}
}

// done reports whether nothing is left to be done for the claim, ever.
func done(s provision.State) bool {
	return (s.Want == provision.Unwanted || s.Want == provision.Concluded) && s.Entry == provision.NoEntry &&
		(s.Record == storage.RecordPresent || s.Creation == provision.NotRequested || s.Creation == provision.Failed)
}

// waitAfterFailure plans the next call.
func (c *Controller) waitAfterFailure(o *observation, s provision.State) error {
	r, _ := c.memory.of(o.claim.UID)
	switch {
	case s.Creation == provision.Denied && s.Want == provision.Unwanted:
		c.loop.EnqueueAfter(o.subject().key, max(c.Patience.Denial-time.Since(r.deniedAt), c.Backoff.Initial))
		return nil
	case s.Want == provision.Unwanted:
		return c.reportUnresolved(o, o.failure.err)
	case o.failure.ignored && (s.Creation == provision.NotRequested || s.Creation == provision.Failed):
		return nil
	case o.failure.hopeless && (s.Creation == provision.NotRequested || s.Creation == provision.Failed):
		c.loop.EnqueueAfter(o.subject().key, c.Backoff.Max)
		return nil
	}
	return o.failure.err
}

func (c *Controller) refused(o *observation, s provision.State) error {
	c.count(o, o.refused)
	var foreign *provision.NotOurs
	switch {
	case s.Want == provision.Unwanted:
		return c.reportUnresolved(o, o.refused)
	case errors.As(o.refused, &foreign) && foreign.Sentence == "":
		c.loop.EnqueueAfter(o.subject().key, c.Backoff.Max)
		return nil
	case errors.As(o.refused, &foreign):
		c.Reporter.Report(o.claim, controller.NormalEvent(provisioning, foreign.Sentence))
		return nil
	}
	return c.reportFailure(o, c.sentence(o, o.refused, false))
}
