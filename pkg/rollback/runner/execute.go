package runner

import (
	"context"
	"errors"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/rollback"
)

// execute saves the open entries, then removes what may be removed. It continues after an
// error, and stops if the context ends.
func (o *Options) execute(ctx context.Context, seen *observation) (changed bool, err error) {
	if err := o.saveOpenEntries(seen); err != nil {
		return false, err
	}
	var errs []error
	for _, step := range []list{seen.policy, seen.own, seen.shared, seen.leases} {
		for _, item := range step.items {
			if !item.decision.Removes() {
				continue
			}
			if ctx.Err() != nil {
				return changed, context.Cause(ctx)
			}
			changed = true
			errs = append(errs, o.removeItem(ctx, item))
		}
	}
	return changed, errors.Join(errs...)
}

// removeItem removes the item, unless it has changed since the decision.
func (o *Options) removeItem(ctx context.Context, item Item) error {
	err := item.remove(ctx)
	switch {
	case apierrors.IsNotFound(err):
		o.report("already gone: %s", item)
	case patch.IsStale(err):
		o.report("left as it is, because it has changed meanwhile: %s", item)
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("remove %s: %w", terminal.Printable(item.String()), err)
	default:
		o.report("removed: %s", item)
	}
	return nil
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
