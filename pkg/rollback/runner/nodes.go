package runner

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/controller/leader"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/rollback"
	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// heldFor is how long no replica of node-terminator leads: the time to uninstall the program.
const heldFor = 5 * time.Minute

// ofTerminator are the annotations of node-terminator.
var ofTerminator = []string{termination.InstanceAnnotation, termination.TimestampAnnotation}

// protected is a Node or NodeClaim that node-terminator has written to.
type protected struct {
	metav1.Object
	ref cluster.Ref
}

// readNodes reads the nodes, our claims and the Lease of node-terminator.
func (s *observation) readNodes(ctx context.Context) {
	s.readTerminator(ctx)
	var found []protected
	terminating := map[string]bool{} // nodes by name, which is that of their claims, too
	add := func(object metav1.Object, ref cluster.Ref) {
		if ref.Name = object.GetName(); object.GetDeletionTimestamp() != nil {
			terminating[ref.Name] = terminating[ref.Name] || termination.Protected(object)
		}
		found = append(found, protected{object, ref})
	}
	for _, claim := range s.claims(ctx) {
		add(claim.Object, claim.ref)
	}
	nodes := cluster.Ref{Resource: corev1.SchemeGroupVersion.WithResource("nodes"), Kind: "Node"}
	seen := s.reader.EachMetadata(ctx, nodes.Resource, "", func(page []metav1.PartialObjectMetadata) {
		for i := range page {
			add(&page[i], nodes)
		}
	})
	s.nodes.unread = s.nodes.unread || !seen
	s.addNodes(found, terminating)
}

// claims returns the NodeClaims that are ours.
func (s *observation) claims(ctx context.Context) []protected {
	ref, served := s.reader.Find("karpenter.sh/v1", "NodeClaim", "", "")
	if !served {
		return nil
	}
	claims, seen := s.reader.Objects(ctx, ref.Resource, "")
	s.nodes.unread = s.nodes.unread || !seen
	var found []protected
	for i := range claims {
		group, _, _ := unstructured.NestedString(claims[i].Object, "spec", "nodeClassRef", "group")
		if group == termination.ClaimGroup {
			found = append(found, protected{&claims[i], ref})
		}
	}
	return found
}

// readTerminator finds out whether node-terminator leads.
func (s *observation) readTerminator(ctx context.Context) {
	lease, _ := cluster.Get(ctx, s.reader, cluster.Leases, cluster.ControlPlane, cluster.NodeTerminatorLease)
	if lease == nil || blocker.LeaseHolder(lease) == "" || blocker.LeaseHolder(lease) == standby {
		return
	}
	at := cluster.GotAt(ctx, s.reader, cluster.Leases, cluster.ControlPlane, cluster.NodeTerminatorLease)
	if blocker.JudgeLease(lease, at) != blocker.LeaseExpiredTwice {
		s.terminator = lease
	}
}

// addNodes decides about the objects. A list may have begun again: the last state of an object counts.
func (s *observation) addNodes(found []protected, terminating map[string]bool) {
	last := map[types.UID]protected{}
	for _, one := range found {
		last[one.GetUID()] = one
	}
	for _, one := range last {
		part := partOf(one)
		if part == "" {
			continue
		}
		state := rollback.NodeState{Terminating: one.GetDeletionTimestamp() != nil || terminating[one.GetName()],
			OthersTerminate: len(terminating) > 0, Led: s.terminator != nil}
		object := blocker.Object{Kind: one.ref.Kind, Group: one.ref.Resource.Group, Name: one.GetName(),
			UID: string(one.GetUID())}
		s.nodes.items = append(s.nodes.items, newItem(object, part, rollback.DecideNode(state), s.releasing(one)))
	}
	slices.SortFunc(s.nodes.items, func(a, b Item) int {
		return cmp.Or(strings.Compare(a.Object.Kind, b.Object.Kind), strings.Compare(a.Object.Name, b.Object.Name))
	})
}

// partOf names what node-terminator has written to the object, "" for nothing.
func partOf(object metav1.Object) string {
	if termination.Protected(object) {
		return "finalizer " + termination.Finalizer
	}
	for _, key := range ofTerminator {
		if _, has := object.GetAnnotations()[key]; has {
			return "annotation " + key
		}
	}
	return ""
}

// releasing returns the function that takes finalizer and annotations off the object, unless it is deleted meanwhile.
// Kubelets write their Nodes at any time: the patch is repeated with what is read then.
func (s *observation) releasing(one protected) func(context.Context) (metav1.Object, error) {
	objects := s.reader.Dynamic().Resource(one.ref.Resource)
	return func(ctx context.Context) (metav1.Object, error) {
		object := one.Object
		for attempt := 1; ; attempt++ {
			written, err := release(ctx, objects, one.ref.Name, object)
			if err == nil || !patch.IsStale(err) || attempt == 3 {
				return written, err
			}
			live, readErr := objects.Get(ctx, one.ref.Name, metav1.GetOptions{})
			if readErr != nil || live.GetUID() != one.GetUID() || live.GetDeletionTimestamp() != nil {
				return nil, err
			}
			object = live
		}
	}
}

// patcher sends patches of objects of one kind.
type patcher interface {
	Patch(ctx context.Context, name string, kind types.PatchType, body []byte, options metav1.PatchOptions,
		subresources ...string) (*unstructured.Unstructured, error)
}

// release removes finalizer and annotations in the version that was read: a JSON patch cannot test that an object is not
// being deleted.
func release(ctx context.Context, objects patcher, name string, object metav1.Object) (metav1.Object, error) {
	change := patch.ForVersion(object)
	if at := slices.Index(object.GetFinalizers(), termination.Finalizer); at >= 0 {
		path := fmt.Sprintf("/metadata/finalizers/%d", at)
		change.Test(path, termination.Finalizer).Remove(path)
	}
	for _, key := range ofTerminator {
		if _, has := object.GetAnnotations()[key]; has {
			change.Remove("/metadata/annotations/" + patch.Escape(key))
		}
	}
	body, err := change.Bytes()
	if err != nil {
		return nil, err
	}
	written, err := objects.Patch(ctx, name, types.JSONPatchType, body, metav1.PatchOptions{})
	if err != nil {
		return nil, err
	}
	return written, nil
}

// stopTerminator takes the Lease of node-terminator as a standby Lease, and waits until its leader has stopped: it would
// add each finalizer again. No replica leads until the program is uninstalled, or the Lease has run out.
func (o *Options) stopTerminator(ctx context.Context, seen *observation) error {
	removes := slices.ContainsFunc(seen.nodes.items, func(i Item) bool { return i.decision.Removes() })
	if seen.terminator == nil || !removes {
		return nil
	}
	leads := time.Duration(ptr.Deref(seen.terminator.Spec.LeaseDurationSeconds, 0)) * time.Second
	if _, err := seen.reader.Kubernetes().CoordinationV1().Leases(seen.terminator.Namespace).
		Update(ctx, takenLease(seen.terminator, seen.reader.Now()), metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("take the Lease of node-terminator, which would add its finalizers again: %w", err)
	}
	o.report("node-terminator is stopped by its Lease, for %s; waiting %s until its leader has ended", heldFor, leads)
	ended := time.NewTimer(leads)
	defer ended.Stop()
	select {
	case <-ended.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// takenLease returns the Lease as the rollback holds it.
func takenLease(lease *coordinationv1.Lease, now time.Time) *coordinationv1.Lease {
	taken := lease.DeepCopy()
	metav1.SetMetaDataAnnotation(&taken.ObjectMeta, leader.AcquiredFrom, lease.ResourceVersion)
	taken.Spec.HolderIdentity = ptr.To(standby)
	taken.Spec.LeaseDurationSeconds = ptr.To(int32(heldFor / time.Second))
	taken.Spec.AcquireTime, taken.Spec.RenewTime = &metav1.MicroTime{Time: now}, &metav1.MicroTime{Time: now}
	return taken
}

// stepNodes takes the finalizer and the annotations of node-terminator off nodes.
func (s *observation) stepNodes() Step {
	step := Step{Number: 1, Title: "Take finalizer and annotations off nodes", By: "exeunt", State: s.nodes.state(),
		Items: s.nodes.items}
	if s.terminator != nil && step.State == rollback.Pending {
		step.Text = append(step.Text, fmt.Sprintf("node-terminator runs. --confirm takes its Lease and waits until it has "+
			"stopped. Uninstall it within %s, or it adds the finalizer again.", heldFor))
	}
	first := slices.IndexFunc(step.Items, func(i Item) bool { return i.decision.Reason == rollback.NodeTerminates })
	if first < 0 || s.terminator != nil {
		return step
	}
	step.Text = append(step.Text, "Nodes that are being deleted stay until node-terminator runs again. If it does not "+
		"come back, this says how each can end, and what that costs:")
	step.Commands = append(step.Commands, s.options.Commands.Exeunt("", "why", "node/"+step.Items[first].Object.Name))
	return step
}
