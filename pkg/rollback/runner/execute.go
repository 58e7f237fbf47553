package runner

import (
	"context"
	"errors"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/rollback"
)

// mostErrors is how many removals may fail: without a right all of a kind do.
const mostErrors = 10

// execute saves the open entries, then removes and rewrites what may be removed and rewritten. It continues after an
// error, and stops if the context ends, an answer does not come, or errors repeat.
func (o *Options) execute(ctx context.Context, seen *observation) (changed bool, err error) {
	if err := o.prepare(ctx, seen); err != nil {
		return false, err
	}
	var errs []error
	for _, step := range []list{seen.policy, seen.own, seen.shared, seen.leases, seen.windows, seen.nodes} {
		for _, item := range step.items {
			if !item.decision.Changes() {
				continue
			}
			if ctx.Err() != nil {
				return changed, context.Cause(ctx)
			}
			changed = true
			if err := o.changeItem(ctx, item); err != nil {
				errs = append(errs, err)
			}
			if isLast := len(errs) == mostErrors; isLast || len(errs) > 0 &&
				errors.Is(errs[len(errs)-1], context.DeadlineExceeded) {
				return changed, errors.Join(append(errs, errors.New("stopped: the rest was left as it is"))...)
			}
		}
	}
	return changed, errors.Join(errs...)
}

// prepare does what has to be done before the first change.
func (o *Options) prepare(ctx context.Context, seen *observation) error {
	if err := o.saveOpenEntries(seen); err != nil {
		return err
	}
	return o.stopTerminator(ctx, seen)
}

// changeItem removes or rewrites the item, unless it has changed since the decision.
func (o *Options) changeItem(ctx context.Context, item Item) error {
	writing, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	object, err := item.change(writing)
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil && item.decision.Action == rollback.Rewrite:
		o.report("rewritten: %s", item)
		return nil
	case err == nil && object != nil && item.remains(object):
		return fmt.Errorf("remove %s: the API server accepted the write and left the object as it was, as an admission webhook can", terminal.Printable(item.String()))
	case err == nil:
		o.report("removed: %s", item)
		return nil
	}
	return o.refused(writing, item, err)
}

// refused says what became of an item that the API server did not remove. The answer to a write may be that
// of an admission webhook, also "not found": only a read proves that the object is gone.
func (o *Options) refused(ctx context.Context, item Item, refusal error) error {
	verb := "remove"
	if item.decision.Action == rollback.Rewrite {
		verb = "rewrite"
	}
	refusal = fmt.Errorf("%s %s: %w", verb, terminal.Printable(item.String()), refusal)
	if !answer.NeedsRead(refusal) {
		return refusal
	}
	exists, err := o.exists(ctx, item.Object)
	switch {
	case err != nil:
		return errors.Join(refusal, fmt.Errorf("read %s: %w", terminal.Printable(item.Object.String()), err))
	case !exists:
		o.report("already gone: %s", item)
		return nil
	case patch.IsStale(refusal):
		o.report("left as it is, because it has changed meanwhile or a webhook refuses the change: %s: %v", item, refusal)
		return nil
	}
	return fmt.Errorf("%w; but the object exists: an admission webhook may refuse the change", refusal)
}

// exists reads whether the object exists, and not another of its name.
func (o *Options) exists(ctx context.Context, object blocker.Object) (bool, error) {
	reader, err := o.Connect()
	if err != nil {
		return false, err
	}
	mapping, err := reader.Mapper().RESTMapping(schema.GroupKind{Group: object.Group, Kind: object.Kind})
	if err != nil {
		return false, err
	}
	objects := reader.Dynamic().Resource(mapping.Resource).Namespace(object.Namespace)
	found, exists, err := answer.Get(ctx, object.Name, func(ctx context.Context, name string,
		options metav1.GetOptions) (*unstructured.Unstructured, error) {
		return objects.Get(ctx, name, options)
	})
	return exists && string(found.GetUID()) == object.UID, err
}

// saveOpenEntries writes the entries of Leases that are about to be removed to a file.
func (o *Options) saveOpenEntries(seen *observation) error {
	var leases []*coordinationv1.Lease
	for _, item := range seen.leases.items {
		if item.decision.Action == rollback.SaveAndRemove {
			leases = append(leases, item.lease)
		}
	}
	if len(leases) == 0 {
		return nil
	}
	name, err := saveEntries(o.Save, leases, seen.reader.Now())
	if err != nil {
		return err
	}
	o.report("saved the open entries of the journal: %s", name)
	return nil
}

func (o *Options) report(format string, values ...any) {
	fmt.Fprintln(o.Progress, terminal.Printable(fmt.Sprintf(format, values...)))
}
