package why

import (
	"cmp"
	"context"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/api"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/families"
	"github.com/exeunt-io/exeunt/pkg/why/holder"
	"github.com/exeunt-io/exeunt/pkg/why/nodes"
	"github.com/exeunt-io/exeunt/pkg/why/signal"
	"github.com/exeunt-io/exeunt/pkg/why/storage"
)

// Explorer explains objects of one cluster. Objects that are explained at the same time by
// one Explorer share what was read.
type Explorer struct {
	reader   *cluster.Reader
	commands cluster.Commands
	probe    bool

	kinds      map[schema.GroupKind]chain.Chain
	finalizers map[string]chain.FinalizerChain
}

// NewExplorer returns an Explorer. probe allows dry-run writes.
func NewExplorer(reader *cluster.Reader, commands cluster.Commands, probe bool) *Explorer {
	e := &Explorer{
		reader: reader, commands: commands, probe: probe,
		kinds: map[schema.GroupKind]chain.Chain{}, finalizers: map[string]chain.FinalizerChain{},
	}
	for _, chains := range []map[schema.GroupKind]chain.Chain{storage.Chains(), nodes.Chains(), api.Chains(),
		signal.Chains()} {
		maps.Copy(e.kinds, chains)
	}
	for _, chains := range []map[string]chain.FinalizerChain{storage.Finalizers(), nodes.Finalizers(), api.Finalizers()} {
		maps.Copy(e.finalizers, chains)
	}
	return e
}

// Explain reads the object live and returns why its deletion waits. The error says why the
// object could not be read.
func (e *Explorer) Explain(ctx context.Context, ref cluster.Ref) (blocker.Report, error) {
	scope := *e
	scope.reader = e.reader.Scope()
	return scope.explain(ctx, ref)
}

// explain explains the object with a Reader of its own: a report names what its explanation could not read,
// and nothing that another could not.
func (e *Explorer) explain(ctx context.Context, ref cluster.Ref) (blocker.Report, error) {
	object, presence, err := e.reader.Live(ctx, ref)
	switch presence {
	case cluster.Present:
		return e.report(ctx, object), nil
	case cluster.Absent:
		if !answer.IsAbsent(err, ref.Name) { // the kind was served a moment ago
			return blocker.Report{}, err
		}
		name := blocker.Object{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, Group: ref.Resource.Group}
		gone := blocker.Report{Object: name, Verdict: blocker.Gone}
		gone.Blockers = e.afterwards(ctx, ref)
		return gone.Normalized(), nil
	case cluster.Unseen: // the error may tell why
	}
	t := &tree{Explorer: e, seen: map[types.UID]bool{}}
	found := api.Unreadable(ctx, t, ref, err)
	if len(found) == 0 {
		return blocker.Report{}, err
	}
	name := blocker.Object{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, Group: ref.Resource.Group}
	report := blocker.Report{Object: name, Verdict: blocker.Worst(found), Blockers: found}.Normalized()
	report.Incomplete = append(report.Incomplete, e.reader.Incomplete()...)
	return report, nil
}

// afterwards returns what is known of an object that does not exist.
func (e *Explorer) afterwards(ctx context.Context, ref cluster.Ref) []blocker.Blocker {
	if ref.Kind == "Node" && ref.Resource.Group == "" {
		return nodes.Ended(ctx, e.reader, e.commands, ref.Name)
	}
	return append(signal.Ended(ctx, e.reader, e.commands, ref), signal.Frozen(ctx, e.reader, e.commands, ref)...)
}

// living returns what is to be said of an object that nobody has deleted, and that waits for nothing.
func living(ctx context.Context, t *tree, object *unstructured.Unstructured) []blocker.Blocker {
	if found := api.Unresolvable(t, object); len(found) > 0 {
		return found
	}
	return append(signal.Living(ctx, t, object), signal.Refused(ctx, t, object)...)
}

// report explains an object that was read.
func (e *Explorer) report(ctx context.Context, object *unstructured.Unstructured) blocker.Report {
	t := &tree{Explorer: e, root: object.GetUID(), seen: map[types.UID]bool{}}
	found := t.Explain(ctx, object)
	if len(found) > 0 && object.GetDeletionTimestamp() != nil && found[0].Reason != blocker.LeftInGrace {
		refusals := api.Refusals(ctx, t, object)
		if len(refusals) == 0 {
			found = api.NameDeniers(ctx, t, object, found)
		}
		found = append(found, refusals...)
	}
	if len(found) == 0 && object.GetDeletionTimestamp() == nil {
		found = living(ctx, t, object)
	}
	report := blocker.Report{Object: cluster.ObjectOf(object), Since: storage.WaitsSince(object),
		Deadline: e.deadlineOf(ctx, object), Blockers: found}.Normalized()
	report.Verdict = blocker.Worst(report.Blockers)
	if len(found) == 0 && object.GetDeletionTimestamp() != nil { // it goes just now
		report.Verdict = blocker.Waiting
	}
	report.Incomplete = append(report.Incomplete, e.reader.Incomplete()...)
	return report
}

// deadlineOf returns the deadline of an object that is being deleted, nil without one. That of a node or a teardown counts
// whatever grace period the object has.
func (e *Explorer) deadlineOf(ctx context.Context, object *unstructured.Unstructured) *blocker.Deadline {
	return cmp.Or(nodes.DeadlineOf(ctx, e.reader, object), signal.DeadlineOf(object),
		blocker.DeadlineOf(object, api.IsDefinedGroup(object.GroupVersionKind().Group)))
}

// tree explains one object and those that it waits for.
type tree struct {
	*Explorer
	root types.UID // of the explained object

	mu   sync.Mutex
	seen map[types.UID]bool
}

// Explain returns what the deletion of the object waits for.
func (t *tree) Explain(ctx context.Context, object *unstructured.Unstructured) []blocker.Blocker {
	if !isAsked(object) || !t.enter(object.GetUID()) {
		return nil
	}
	explain, special := t.kinds[object.GroupVersionKind().GroupKind()]
	if !special {
		explain = chain.FinalizerBlockers
	}
	found := explain(ctx, t, object)
	if len(found) == 0 {
		return api.LeftInGrace(ctx, t, object)
	}
	return found
}

// enter reports whether the object is not yet in the tree, and adds it.
func (t *tree) enter(uid types.UID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.seen[uid] {
		return false
	}
	t.seen[uid] = true
	return true
}

// isAsked reports whether the object may have blockers: it is being deleted, or it is a
// volume whose reclaim policy applies.
func isAsked(object *unstructured.Unstructured) bool {
	if object.GetDeletionTimestamp() != nil {
		return true
	}
	phase, _, _ := unstructured.NestedString(object.Object, "status", "phase")
	isVolume := object.GroupVersionKind().GroupKind() == schema.GroupKind{Kind: "PersistentVolume"}
	return isVolume && (phase == string(corev1.VolumeReleased) || phase == string(corev1.VolumeFailed))
}

// Finalizer returns the blocker of one finalizer.
func (t *tree) Finalizer(ctx context.Context, object *unstructured.Unstructured, finalizer string) blocker.Blocker {
	if explain, special := t.finalizers[finalizer]; special { // their controllers read no deadline of a window
		return explain(ctx, t, object, finalizer)
	}
	gvk := object.GroupVersionKind()
	if family, known := families.Find(finalizer, gvk.Kind, gvk.Group); known {
		return t.inGrace(object, t.Holders().Judge(ctx, object, finalizer, family, ""))
	}
	return t.inGrace(object, t.Holders().Attribute(ctx, object, finalizer))
}

// Reader reads the cluster.
func (e *Explorer) Reader() *cluster.Reader { return e.reader }

// Holders judges controllers.
func (e *Explorer) Holders() holder.Finder {
	return holder.Finder{Reader: e.reader, Commands: e.commands}
}

// Commands writes the next steps.
func (e *Explorer) Commands() cluster.Commands { return e.commands }

// Probe reports whether dry-run writes are allowed.
func (e *Explorer) Probe() bool { return e.probe }
