package runner

import (
	"context"
	"errors"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/exeunt-io/exeunt/internal/absent"
	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/rollback"
)

// mostErrors is how many removals may fail: without a right all of a kind do.
const mostErrors = 10

// execute saves the open entries, then removes what may be removed. It continues after an
// error, and stops if the context ends, an answer does not come, or errors repeat.
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
			if err := o.removeItem(ctx, item); err != nil {
				errs = append(errs, err)
			}
			if isLast := len(errs) == mostErrors; isLast || len(errs) > 0 && errors.Is(errs[len(errs)-1], context.DeadlineExceeded) {
				return changed, errors.Join(append(errs, errors.New("stopped: the rest was left as it is"))...)
			}
		}
	}
	return changed, errors.Join(errs...)
}

// removeItem removes the item, unless it has changed since the decision.
func (o *Options) removeItem(ctx context.Context, item Item) error {
	writing, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	err := item.remove(writing)
	switch {
	case absent.Is(err, item.Object.Name):
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
