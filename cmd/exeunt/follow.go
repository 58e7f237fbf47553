package main

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// follow explains the object until it is gone, or exists again under a new UID. Ctrl-C is
// the usual end of a watch, and no error.
func (e *explanation) follow(ctx context.Context, ref cluster.Ref) error {
	reader, err := cluster.NewReader(rest.CopyConfig(e.config))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var explorer *why.Explorer // of the latest explanation
	watcher := why.Watcher{
		Explain: func(ctx context.Context) (blocker.Report, error) {
			if explorer, err = e.open(); err != nil {
				return blocker.Report{}, err
			}
			limited, cancel := context.WithTimeout(ctx, e.timeout)
			defer cancel()
			return within(limited, grace, func() (blocker.Report, error) { return explorer.Explain(limited, ref) })
		},
		Recreated: func(ctx context.Context, before, now blocker.Object) blocker.Report {
			return explorer.Recreated(ctx, ref, before, now)
		},
		Changed: func(report blocker.Report) error { return e.printer.Report(report, explorer.Reader().Now()) },
		Failed:  e.warn,
	}
	verdict, err := watcher.Run(ctx, why.Changes(ctx, reader, ref, e.warn))
	if err != nil && ctx.Err() == nil {
		return outcome(blocker.Gone, e.sentence(unreadable(ref, err)))
	}
	return outcome(verdict, nil)
}

// warn prints an error that does not end the watch.
func (e *explanation) warn(err error) {
	fmt.Fprintln(e.streams.ErrOut, "exeunt:", oneLine(e.sentence(err)))
}
