package nodes

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/forecast"
	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/families"
)

// karpenterFinalizer is on Nodes and NodeClaims of Karpenter.
const karpenterFinalizer = "karpenter.sh/termination"

// explainTermination returns what keeps a finalizer of a Node, or a NodeClaim, whose controller drains the node first.
func explainTermination(ctx context.Context, e chain.Explorer, object *unstructured.Unstructured,
	finalizer string) blocker.Blocker {
	gvk := object.GroupVersionKind()
	family, known := families.Find(finalizer, gvk.Kind, gvk.Group)
	if !known {
		return e.Holders().Attribute(ctx, object, finalizer)
	}
	b := e.Holders().Judge(ctx, object, finalizer, family, "")
	if gvk.Kind == "NodeClaim" {
		return explainClaim(ctx, e, object, b)
	}
	if finalizer == termination.Finalizer {
		b = withRemedy(e, b)
	}
	if b.Reason == blocker.ControllerGone {
		return b
	}
	t := observeTermination(ctx, e, object)
	t.ours = finalizer == termination.Finalizer
	return t.explain(ctx, e, b)
}

// explainClaim returns what a NodeClaim waits for: its Node.
func explainClaim(ctx context.Context, e chain.Explorer, claim *unstructured.Unstructured, b blocker.Blocker) blocker.Blocker {
	name := nodeOfClaim(claim)
	if name == "" {
		return b
	}
	ref := cluster.Ref{Resource: corev1.SchemeGroupVersion.WithResource("nodes"), Kind: "Node", Name: name}
	node, presence, _ := e.Reader().Live(ctx, ref)
	switch {
	case presence == cluster.Absent:
		b.Evidence = append(b.Evidence, blocker.Evidence{Source: blocker.FromField, Text: "there is no node " + name})
	case node == nil:
	case node.GetDeletionTimestamp() == nil:
		b.Evidence = append(b.Evidence, blocker.Evidence{Source: blocker.FromField,
			Text: "node " + name + " exists, and is not being deleted yet"})
	default:
		b.Blockers = e.Explain(ctx, node)
	}
	return b
}

// nodeOfClaim returns the name of the node of a NodeClaim: our claims are named as their nodes.
func nodeOfClaim(claim *unstructured.Unstructured) string {
	if name, _, _ := unstructured.NestedString(claim.Object, "status", "nodeName"); name != "" {
		return name
	}
	if group, _, _ := unstructured.NestedString(claim.Object, "spec", "nodeClassRef", "group"); group == termination.ClaimGroup {
		return claim.GetName()
	}
	return ""
}

// withRemedy says what to do about our finalizer if node-terminator was not seen at work.
func withRemedy(e chain.Explorer, b blocker.Blocker) blocker.Blocker {
	if b.Reason != blocker.ControllerGone && b.Reason != blocker.ControllerUnseen {
		return b
	}
	b.Next = cluster.Steps("start node-terminator again, which ends the node") + "\n" +
		cluster.Comments("only if it is uninstalled for good: this takes its finalizer off all nodes that are not being deleted",
			e.Commands().Exeunt("", "rollback", "nodes", "--confirm")) + "\n" + b.Next
	return b
}

// draining is a node that is being drained.
type draining struct {
	node   *unstructured.Unstructured
	report forecast.Report
	pods   map[string]*corev1.Pod // by namespace/name
	events []corev1.Event
	// own is the report of node-terminator, nil without one.
	own  *Report
	ours bool
	now  time.Time
	// incomplete: something that may keep the node could not be read.
	incomplete bool
}

// observeTermination reads what is on the node.
func observeTermination(ctx context.Context, e chain.Explorer, node *unstructured.Unstructured) *draining {
	scope := e.Reader().Scope()
	report, err := forecast.Read(ctx, scope, node.GetName(), "")
	if err != nil {
		return &draining{node: node, incomplete: true}
	}
	t := &draining{node: node, report: report, pods: map[string]*corev1.Pod{}, now: scope.Now()}
	pods, _ := cluster.List(ctx, scope, cluster.Pods, cluster.Selection{Fields: "spec.nodeName=" + node.GetName()})
	for i := range pods {
		t.pods[pods[i].Namespace+"/"+pods[i].Name] = &pods[i]
	}
	t.events, _ = cluster.EventsOf(ctx, scope, "Node", node)
	t.incomplete = len(scope.Incomplete()) > 0
	if slices.Contains(node.GetFinalizers(), termination.Finalizer) { // a report decides nothing, here neither
		t.readReport(ctx, scope)
	}
	return t
}

// readReport reads the report of node-terminator about the node.
func (t *draining) readReport(ctx context.Context, reader *cluster.Reader) {
	reports, err := Reports(ctx, reader, t.node.GetName())
	if err != nil {
		reader.Note("%s", cluster.Failure("list", corev1.Resource("configmaps"), deploy.Namespace, err))
	}
	for i := range reports {
		if reports[i].UID == string(t.node.GetUID()) {
			t.own = &reports[i]
		}
	}
}

// overdueAfter is how long after the end of its machine a node may still be there.
const overdueAfter = time.Minute

// overdue reports whether the node should have ended a while ago.
func (t *draining) overdue() bool {
	stop, err := time.Parse(time.RFC3339, t.report.Stop)
	return err == nil && t.now.After(stop.Add(overdueAfter))
}

// explain adds what the drain waits for to the blocker of the controller.
func (t *draining) explain(ctx context.Context, e chain.Explorer, b blocker.Blocker) blocker.Blocker {
	b.Evidence = append(slices.Clone(b.Evidence), t.evidence()...)
	if t.incomplete || t.overdue() {
		b.Verdict = max(b.Verdict, blocker.Unknown)
	}
	if t.ours {
		b.Blockers = append(b.Blockers, t.machine(e)...)
	}
	b.Blockers = append(b.Blockers, t.podBlockers(ctx, e)...)
	b.Blockers = append(b.Blockers, t.diskBlockers(ctx, e)...)
	return b
}

// shownEvents is how many events of the node are evidence.
const shownEvents = 3

// evidence returns the last events about the drain, and the report of node-terminator.
func (t *draining) evidence() []blocker.Evidence {
	var all []blocker.Evidence
	for _, event := range slices.Backward(t.events) {
		from := cluster.Component(&event)
		if len(all) < shownEvents && (from == "node-terminator" || from == "karpenter") {
			all = append(all, blocker.Evidence{Source: blocker.FromEvent, Text: fmt.Sprintf("%s, last at %s: %s", event.Reason,
				blocker.Time(cluster.EventTime(event)), event.Message)})
		}
	}
	if t.own != nil {
		all = append(all, t.own.evidence()...)
	}
	return all
}

// DeadlineOf returns the deadline of a Node or a NodeClaim that is being terminated, nil without one.
func DeadlineOf(ctx context.Context, reader *cluster.Reader, object *unstructured.Unstructured) *blocker.Deadline {
	drained := slices.ContainsFunc(object.GetFinalizers(), func(name string) bool {
		return name == termination.Finalizer || name == karpenterFinalizer
	})
	name := object.GetName()
	switch gvk := object.GroupVersionKind(); {
	case object.GetDeletionTimestamp() == nil, !drained:
		return nil
	case gvk.Kind == "NodeClaim" && gvk.Group == "karpenter.sh":
		name = nodeOfClaim(object)
	case gvk.Kind != "Node" || gvk.Group != "":
		return nil
	}
	report, err := forecast.Read(ctx, reader, name, "")
	if err != nil || report.Deadline == "" {
		return nil
	}
	found := &blocker.Deadline{Requested: report.Requested, Time: report.Deadline, Source: blocker.FromField,
		Key: report.PeriodFrom}
	for _, key := range []string{termination.TimestampAnnotation, termination.ClaimTimestampAnnotation} {
		if object.GetAnnotations()[key] == report.Deadline {
			found.Source, found.Key = blocker.FromAnnotation, key
		}
	}
	return found
}
