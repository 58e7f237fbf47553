package provisioning

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	library "sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller"

	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/provision"
)

// execute carries out one action and returns what is known afterwards, or nil if
// nothing is left to be done now.
func (c *Controller) execute(ctx context.Context, o *observation, s provision.State, action provision.Action) (*observation, error) {
	switch action {
	case provision.Prepare:
		return c.prepare(ctx, o, s)
	case provision.Hold:
		return c.hold(ctx, o)
	case provision.ReadClaim:
		return c.readClaim(ctx, o)
	case provision.ReadBoth:
		return c.readBoth(ctx, o)
	case provision.Ask:
		return c.ask(ctx, o, s)
	case provision.Save:
		return c.save(ctx, o)
	case provision.Discard:
		return c.discard(ctx, o)
	case provision.LetGo:
		return c.letGo(ctx, o)
	case provision.Reschedule:
		return c.reschedule(ctx, o)
	case provision.Wait:
	}
	return nil, nil
}

// note changes what is remembered of the claim.
func (c *Controller) note(o *observation, change func(*entry)) {
	c.memory.note(o.subject(), o.name, change)
}

// prepare builds the request. A node that is gone is no reason not to find out
// about a volume that is no longer wanted there; nor is anything else that has changed
// since this process asked.
func (c *Controller) prepare(ctx context.Context, o *observation, s provision.State) (*observation, error) {
	after := *o
	if e, _ := c.memory.of(o.claim.UID); s.Want == provision.Unwanted && e.last != nil {
		after.plan = e.last
		return &after, nil
	}
	node, err := c.chosenNode(ctx, o)
	if err == nil && node == nil && s.Want == provision.Wanted && c.wantOf(o) != provision.Wanted {
		return &after, nil
	}
	if err == nil {
		after.plan, err = c.planFor(ctx, o, node)
	}
	if isElsewhere(err) && s.Want != provision.Wanted {
		after.plan, err = c.planFor(ctx, o, nil)
	}
	if c.unfit(o, s, err) {
		return &after, nil
	}
	after.refused = err
	return &after, nil
}

// unfit notes that the chosen node is none for the volume, if that is the error.
func (c *Controller) unfit(o *observation, s provision.State, err error) bool {
	if !isElsewhere(err) || s.Want != provision.Wanted {
		return false
	}
	c.note(o, func(e *entry) { e.unfit = o.claim.Annotations[binding.SelectedNode] })
	_ = c.reportFailure(o, err) // it is the reason of what follows
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
		return nil, fmt.Errorf("storage class %q not found", binding.ClaimClass(o.claim))
	case !c.Serves(class.Provisioner):
		return nil, &provision.Refusal{Lasting: true, Sentence: fmt.Sprintf("The storage class %q is now of the provisioner %q", class.Name, class.Provisioner)}
	}
	return c.Provisioner.prepare(ctx, library.ProvisionOptions{StorageClass: class, PVName: o.name, PVC: o.claim, SelectedNode: node})
}

// chosenNode returns the node that the scheduler chose, nil if there is none. One
// that is gone is noted as unfit.
func (c *Controller) chosenNode(ctx context.Context, o *observation) (*v1.Node, error) {
	name := o.claim.Annotations[binding.SelectedNode]
	if name == "" {
		return nil, nil
	}
	node, err := c.Node(ctx, name)
	switch {
	case apierrors.IsNotFound(err):
		c.note(o, func(e *entry) { e.unfit = name })
		_ = c.reportFailure(o, fmt.Errorf("the chosen node %s no longer exists", name))
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the chosen node %s: %w", name, err)
	}
	return node, nil
}

// hold puts the finalizer on the claim. The server refuses that for a claim that is
// being deleted, and returns the claim as it is: that is a live read. That the claim
// was not held is what the patch tests, so that nobody has asked the driver before.
func (c *Controller) hold(ctx context.Context, o *observation) (*observation, error) {
	change := finalizer.Change{Add: []finalizer.Name{finalizer.Provisioning}}
	claim, err := c.writer.Claim(ctx, o.claim, finalizer.Edit(patch.For(o.claim), o.claim, change))
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	c.note(o, func(e *entry) {
		if !e.told {
			e.tell(provision.Never)
		}
	})
	after := o.next(claim)
	after.read = provision.ClaimRead
	return after, nil
}

// readClaim reads the claim from the API server, and its node if the request was
// built earlier.
func (c *Controller) readClaim(ctx context.Context, o *observation) (*observation, error) {
	claim, err := c.Client.CoreV1().PersistentVolumeClaims(o.claim.Namespace).Get(ctx, o.claim.Name, metav1.GetOptions{})
	after := o.next(claim)
	switch {
	case apierrors.IsNotFound(err), err == nil && claim.UID != o.claim.UID:
		after.claim, after.gone = o.claim, true
	case err != nil:
		return nil, fmt.Errorf("read claim %s/%s: %w", o.claim.Namespace, o.claim.Name, err)
	}
	after.read = provision.ClaimRead
	if e, _ := c.memory.of(o.claim.UID); e.asked == provision.Pending && c.wantOf(after) == provision.Wanted {
		if _, err := c.chosenNode(ctx, after); err != nil {
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
	volume, err := c.Client.CoreV1().PersistentVolumes().Get(ctx, o.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		volume = nil
	case err != nil:
		return nil, fmt.Errorf("read volume %s: %w", o.name, err)
	}
	c.note(o, func(e *entry) { e.taken = c.relation(volume, o.claim, *e) == provision.Impostor })
	after.volume, after.read = volume, provision.BothRead
	return after, c.lookElsewhere(ctx, after)
}

// lookElsewhere finds out whether the volume that the claim names by now, and that
// somebody else has written, is for the disk that was made for the claim.
func (c *Controller) lookElsewhere(ctx context.Context, o *observation) error {
	e, _ := c.memory.of(o.claim.UID)
	name := o.claim.Spec.VolumeName
	if o.gone || e.made == nil || name == "" || name == o.name {
		return nil
	}
	volume, err := read(ctx, "volume", name, c.Client.CoreV1().PersistentVolumes().Get)
	if err != nil || volume == nil || !c.Deletion.SameDisk(e.made, volume) {
		return err
	}
	c.reportRecordedElsewhere(o, e.shown)
	c.forgetMade(o, e)
	return nil
}

// letGo takes the finalizer off.
func (c *Controller) letGo(ctx context.Context, o *observation) (*observation, error) {
	change := finalizer.Change{Remove: []finalizer.Name{finalizer.Provisioning}}
	claim, err := c.writer.Claim(ctx, o.claim, finalizer.Edit(patch.For(o.claim), o.claim, change))
	switch {
	case apierrors.IsNotFound(err):
		after := o.next(o.claim)
		after.gone = true
		return after, nil
	case err != nil:
		return nil, err
	}
	return o.next(claim), nil
}

// reschedule lets the scheduler choose another node, unless it has already.
func (c *Controller) reschedule(ctx context.Context, o *observation) (*observation, error) {
	path := "/metadata/annotations/" + patch.Escape(binding.SelectedNode)
	change := patch.For(o.claim).Test(path, o.claim.Annotations[binding.SelectedNode]).Remove(path)
	claim, err := c.writer.Claim(ctx, o.claim, change)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	klog.FromContext(ctx).V(2).Info("Another node is to be chosen for the claim", "unfit", o.claim.Annotations[binding.SelectedNode])
	c.note(o, func(e *entry) { e.unfit = "" })
	return o.next(claim), nil
}

// wait says what the claim waits for. What another try may change is an error.
func (c *Controller) wait(o *observation, s provision.State, reason provision.Reason) error {
	switch reason {
	case provision.RequestRefused:
		return c.refused(o, s)
	case provision.NameTaken:
		return c.reportFailure(o, fmt.Errorf("the name %s, which the claim's volume would have, is taken by another volume; delete that one to have the claim served", o.name))
	case provision.VolumeRecorded, provision.NothingMade, provision.NotWanted, provision.VolumeWanted,
		provision.VolumeUnwanted, provision.OutcomeUnknown, provision.NodeUnfit:
	}
	e, _ := c.memory.of(o.claim.UID)
	if s.Want == provision.Unwanted && !s.Held || c.serverOf(o.claim, e) == provision.OtherProcess {
		c.memory.forget(o.claim.UID, o.name)
	}
	if o.gone {
		c.Reporter.Forget(o.claim.UID)
	}
	return nil
}

func (c *Controller) refused(o *observation, s provision.State) error {
	var foreign *provision.NotOurs
	switch {
	case s.Want == provision.Unwanted:
		return c.reportUnresolved(o, o.refused)
	case errors.As(o.refused, &foreign):
		c.Reporter.Report(o.claim, controller.Note(provisioning, foreign.Sentence))
		return nil
	}
	c.count(o, o.refused)
	return c.reportFailure(o, o.refused)
}
