package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/plan"
	"github.com/exeunt-io/exeunt/pkg/teardown/runner"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// carryOut marks what a person wants to keep, and hands over to the runner.
func (f *teardownFlags) carryOut(ctx context.Context, config *rest.Config, read *plan.Plan, options plan.Options) error {
	if err := plan.Mark(ctx, options.Reader, options.Preserve); err != nil {
		return err
	}
	clients, err := runner.Connect(config, nil)
	if err != nil {
		return err
	}
	shown := newProgress(f.streams.ErrOut)
	recorder, stop := controller.Recorder(ctx, clients.Objects, agent)
	defer stop()
	work := f.newRunner(config, clients, read, options)
	work.Recorder, work.Follow = recorder, shown.show
	outcome, err := work.Teardown(ctx, runner.Word{Timeout: time.Duration(f.timeout), Last: f.last})
	shown.end()
	if err != nil {
		return err
	}
	return f.report(ctx, config, read, options, outcome)
}

// agent names the command in events and managed fields.
const agent = "exeunt-teardown"

// newRunner returns the runner of the command.
func (f *teardownFlags) newRunner(config *rest.Config, clients *runner.Clients, read *plan.Plan,
	options plan.Options) *runner.Runner {
	return runner.New(runner.Config{
		Clients: clients, Waits: runner.DefaultWaits(), Cluster: types.UID(read.Cluster.ID), Agent: agent,
		Shared: read.Shared, APIServer: read.APIServer, Command: true,
		Check: func(ctx context.Context, _ *alive.Alive) ([]teardown.Problem, error) {
			again, err := f.reread(ctx, config, options)
			if err != nil {
				return nil, err
			}
			return again.Problems, nil
		},
	})
}

// reread reads the plan again.
func (f *teardownFlags) reread(ctx context.Context, config *rest.Config, options plan.Options) (*plan.Plan, error) {
	config = rest.CopyConfig(config)
	if config.Timeout == 0 {
		config.Timeout = teardownRequest
	}
	reader, err := cluster.NewReader(config)
	if err != nil {
		return nil, err
	}
	options.Reader = reader
	if options.Others, err = f.readers(ctx); err != nil {
		return nil, err
	}
	return plan.Read(ctx, options), nil
}

// report prints what became of each item of the plan, and returns the exit code.
func (f *teardownFlags) report(ctx context.Context, config *rest.Config, before *plan.Plan, options plan.Options,
	outcome *runner.Outcome) error {
	read, err := f.reread(ctx, config, options)
	if err != nil {
		return err
	}
	document := &read.Document
	document.Items = became(before.Items, document.Items)
	document.Phase, document.Reason = outcome.Phase, outcome.Reason
	document.Problems = slices.DeleteFunc(document.Problems, func(p teardown.Problem) bool { return p.Refuses })
	document.Workers = nil
	document.Count()
	if err := f.print(document, options.Reader.Now()); err != nil {
		return err
	}
	if outcome.Phase == teardown.Complete {
		return nil
	}
	return terminal.ExitError{Code: exitWaiting, Err: fmt.Errorf("not finished: %s, %s. The same command goes on", outcome.Phase,
		outcome.Message)}
}

// became returns the items of the plan, gone if they are not among the current ones.
func became(before, current []teardown.Item) []teardown.Item {
	left := slices.Clone(current)
	for i := range left {
		if left[i].Fate == teardown.Planned {
			left[i].Fate = teardown.Remains
		}
	}
	for _, item := range before {
		is := func(other teardown.Item) bool { return other.Kind == item.Kind && other.Object == item.Object }
		if !slices.ContainsFunc(current, is) {
			item.Fate = teardown.Gone
			left = append(left, item)
		}
	}
	return left
}

// command returns this command with an ID.
func (f *teardownFlags) command(id string) string {
	words := []string{"teardown", "--confirm=" + id}
	if f.timeout != teardownTimeout(alive.DefaultTimeout) {
		words = append(words, "--timeout="+time.Duration(f.timeout).String())
	}
	for _, flag := range []struct {
		name   string
		values []string
	}{{"--preserve=", f.preserve}, {"--last=", f.last}, {"--other-kubeconfig=", f.others}} {
		for _, value := range flag.values {
			words = append(words, flag.name+value)
		}
	}
	return commandsOf(f.config).Exeunt("", words...)
}
