package nodeterminator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/termination/node"
)

var errPeriodType = errors.New("spec.terminationGracePeriod of the NodeClaim is no text")

// claimUnmatched is the reason of the event about a claim that is not its Node's.
const claimUnmatched = "NodeNotMatched"

// write is a write of an object.
type write func(ctx context.Context) error

// claimWrite returns the write that keeps the claim of ours with the name of the node together with the node, nil for
// none: who deletes either deletes both, and the claim goes after the Node.
func (c *Controller) claimWrite(name string, n *v1.Node) write {
	one := c.Claims.named(name)
	if one == nil || n == nil || n.DeletionTimestamp != nil {
		c.endDisruption(name)
	}
	if one == nil || c.Claims.unreadable() {
		return nil
	}
	return c.claimWriteOf(one, n)
}

// claimWriteOf is claimWrite of a claim that is there.
func (c *Controller) claimWriteOf(one *claim, n *v1.Node) write {
	mismatch := c.mismatch(one, n)
	if mismatch != "" { // the look at its pods ends with the consent
		c.endDisruption(one.GetName())
	}
	ended := mismatch != "" || n.DeletionTimestamp != nil && !termination.Protected(n)
	switch {
	case ended && one.deleting() && termination.Protected(one):
		return func(ctx context.Context) error { return c.releaseClaim(ctx, one) }
	case mismatch != "" && !one.deleting():
		c.reporter.Report(one, controller.WarningEvent(claimUnmatched, "The node is not touched: "+mismatch))
	case ended:
	case n.DeletionTimestamp == nil:
		return c.liveClaimWrite(one, n)
	case !one.deleting():
		return func(ctx context.Context) error { return c.deleteClaim(ctx, one) }
	}
	return nil
}

// mismatch returns why the claim keeps no Node, "" if it does. A Node that lives and is not served never gets our
// finalizer, so its claim would keep ours for ever.
func (c *Controller) mismatch(one *claim, n *v1.Node) string {
	if why := one.mismatch(n); why != "" || n.DeletionTimestamp != nil {
		return why
	}
	_, _, others, err := c.periodOf(n)
	switch {
	case others:
		return "another program, such as Karpenter, terminates the Node"
	case err != nil:
		return err.Error()
	}
	return ""
}

// liveClaimWrite protects and describes the claim of a node that lives, or deletes the Node with its claim.
func (c *Controller) liveClaimWrite(one *claim, n *v1.Node) write {
	switch {
	case one.deleting() && termination.Protected(n):
		return func(ctx context.Context) error { return c.deleteNode(ctx, n, one) }
	case one.deleting():
		return nil
	case !termination.Protected(one):
		return func(ctx context.Context) error {
			return c.patchClaim(ctx, one, patch.ForVersion(one).Set("/metadata/finalizers",
				append(slices.Clone(one.GetFinalizers()), termination.Finalizer)))
		}
	}
	if c.MaxDisrupted > 0 {
		if write := c.disruptionWrite(n, one); write != nil {
			return write
		}
	}
	return c.describeClaim(n, &observation{})
}

// deleteNode deletes the Node of a claim that is being deleted, after live reads of both: without label and finalizer,
// which a stale cache may still show, the Node would go at once, and its pods undrained.
func (c *Controller) deleteNode(ctx context.Context, n *v1.Node, one *claim) error {
	live, err := c.live(ctx, n)
	if err != nil {
		return err
	}
	claimed, err := c.Claims.client.Get(ctx, one.GetName(), metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read NodeClaim %s: %w", one.GetName(), err)
	}
	_, served, _ := termination.PeriodOf(live)
	_, others := c.Claims.of(live)
	if !served || others || claimed.GetUID() != one.GetUID() || claimed.GetDeletionTimestamp() == nil ||
		(&claim{claimed}).mismatch(live) != "" {
		return errNotAsObserved
	}
	if err := c.isLeading(); err != nil {
		return err
	}
	options, nodes := onlyWith(n.UID), c.Client.CoreV1().Nodes()
	options.Preconditions.ResourceVersion = &live.ResourceVersion
	err = controller.CheckRefusal(ctx, nodes.Delete(ctx, n.Name, options), "node", live, nodes.Get)
	if err == nil || errors.Is(err, controller.ErrGone) {
		return nil
	}
	err = fmt.Errorf("delete node %s, whose NodeClaim is being deleted: %w", n.Name, err)
	return c.reporter.ReportRefusal(n, "Deleting the Node", err)
}

// deleteClaim deletes the claim of a Node that is being deleted.
func (c *Controller) deleteClaim(ctx context.Context, one *claim) error {
	err := controller.CheckRefusal(ctx, c.Claims.client.Delete(ctx, one.GetName(), onlyWith(one.GetUID())), "NodeClaim",
		one.Unstructured, c.Claims.get)
	if err == nil || errors.Is(err, controller.ErrGone) {
		return nil
	}
	err = fmt.Errorf("delete NodeClaim %s, whose node is being deleted: %w", one.GetName(), err)
	return c.reporter.ReportRefusal(one, "Deleting the NodeClaim", err)
}

// get reads a claim live.
func (c *Claims) get(ctx context.Context, name string, options metav1.GetOptions) (*unstructured.Unstructured, error) {
	return c.client.Get(ctx, name, options)
}

// onlyWith are the options of a DELETE of the object with this UID.
func onlyWith(uid types.UID) metav1.DeleteOptions {
	return metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}
}

// releaseClaim removes our finalizer from the claim, after a live read: an informer may have the deletion timestamp as
// another API server served it, and the patch tests it.
func (c *Controller) releaseClaim(ctx context.Context, one *claim) error {
	live, exists, err := answer.Get(ctx, one.GetName(), c.Claims.get)
	switch {
	case err != nil:
		return fmt.Errorf("read NodeClaim %s: %w", one.GetName(), err)
	case !exists:
		return nil
	case live.GetUID() != one.GetUID(), (&claim{live}).deleting() != one.deleting(), !termination.Protected(live):
		return errNotAsObserved
	}
	one = &claim{live}
	at := fmt.Sprintf("/metadata/finalizers/%d", slices.Index(one.GetFinalizers(), termination.Finalizer))
	return c.patchClaim(ctx, one, patch.For(one).TestDeletion(one).Test(at, termination.Finalizer).Remove(at))
}

func (c *Controller) patchClaim(ctx context.Context, one *claim, change *patch.Patch) error {
	body, err := change.Bytes()
	if err != nil {
		return fmt.Errorf("encode patch of NodeClaim %s: %w", one.GetName(), err)
	}
	if _, err := c.Claims.client.Patch(ctx, one.GetName(), types.JSONPatchType, body, metav1.PatchOptions{}); err != nil {
		err = controller.CheckRefusal(ctx, err, "NodeClaim", one.Unstructured, c.Claims.get)
		err = fmt.Errorf("patch NodeClaim %s: %w", one.GetName(), err)
		return c.reporter.ReportRefusal(one, "Writing the NodeClaim", err)
	}
	return nil
}

// describeClaim returns a write that brings deadline and status of the claim up to date, nil if they are.
func (c *Controller) describeClaim(n *v1.Node, o *observation) write {
	one, _ := c.Claims.of(n)
	if one == nil {
		return nil
	}
	status := map[string]any{"nodeName": n.Name}
	if n.Spec.ProviderID != "" {
		status["providerID"] = n.Spec.ProviderID
	}
	before, _, _ := unstructured.NestedSlice(one.Object, "status", "conditions")
	if conditions := one.conditions(before, o); conditions != nil {
		status["conditions"] = conditions
	}
	for field, value := range status {
		old, exists, _ := unstructured.NestedFieldNoCopy(one.Object, "status", field)
		if exists && equality.Semantic.DeepEqual(old, value) {
			delete(status, field)
		}
	}
	text := o.deadline.Annotation()
	written := one.GetAnnotations()[termination.ClaimTimestampAnnotation]
	late := o.state.Begun && text != "" && !isTime(written, o.deadline.End)
	switch {
	case late:
		return func(ctx context.Context) error {
			return c.patchClaim(ctx, one, patch.ForVersion(one).Annotate(one,
				map[string]string{termination.ClaimTimestampAnnotation: text}))
		}
	case len(status) > 0:
		return func(ctx context.Context) error { return c.patchClaimStatus(ctx, one, status) }
	}
	return nil
}

func (c *Controller) patchClaimStatus(ctx context.Context, one *claim, status map[string]any) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": one.GetUID(),
		"resourceVersion": one.GetResourceVersion()}, "status": status})
	if err != nil {
		return fmt.Errorf("encode status of NodeClaim %s: %w", one.GetName(), err)
	}
	_, err = c.Claims.client.Patch(ctx, one.GetName(), types.MergePatchType, body, metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("patch status of NodeClaim %s: %w", one.GetName(), err)
	}
	return nil
}

// conditions returns the conditions of the claim with those that the termination has reached, nil if none is new.
func (c *claim) conditions(before []any, o *observation) []any {
	drained := o.state.Begun && o.state.Pods == node.NoPods && o.state.Settled
	reached := map[string]bool{
		"Drained":             drained,
		"VolumesDetached":     drained && o.state.Volumes == node.Detached,
		"InstanceTerminating": o.state.Deleted || o.state.Instance == node.Stopping || o.state.Proof == node.Given,
	}
	after, changed := slices.Clone(before), false
	for _, kind := range []string{"Drained", "VolumesDetached", "InstanceTerminating"} {
		is := func(one any) bool { fields, _ := one.(map[string]any); return fields["type"] == kind }
		at := slices.IndexFunc(after, is)
		if !reached[kind] || at >= 0 && after[at].(map[string]any)["status"] == string(metav1.ConditionTrue) {
			continue
		}
		changed = true
		after = append(slices.DeleteFunc(after, is), map[string]any{"type": kind, "status": string(metav1.ConditionTrue),
			"reason": kind, "message": "", "lastTransitionTime": o.now.UTC().Format(time.RFC3339)})
	}
	if !changed {
		return nil
	}
	return after
}
