package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
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

// agent names the command in events and managed fields.
const agent = "exeunt-teardown"

// carryOut labels what --preserve names, runs the teardown, and prints the report.
func (f *teardownFlags) carryOut(ctx context.Context, config *rest.Config, read *plan.Plan,
	options plan.Options) error {
	if err := plan.Mark(ctx, options.Reader, options.Preserve); err != nil {
		return err
	}
	clients, err := runner.Connect(config, nil)
	if err != nil {
		return err
	}
	recorder, stop := controller.Recorder(ctx, clients.Objects, agent)
	defer stop()
	shown := newProgress(f.streams.ErrOut)
	work := runner.New(runner.Config{
		Clients: clients, Waits: runner.DefaultWaits(), Cluster: types.UID(read.Cluster.ID), Agent: agent, Command: true,
		Recorder: recorder, Commands: options.Commands, Shared: read.Shared, APIServer: read.APIServer,
		Check: clients.Checker(options), Follow: shown.show,
	})
	outcome, err := work.Teardown(ctx, runner.Word{Timeout: time.Duration(f.timeout), Last: f.last})
	shown.end()
	if err == nil && ctx.Err() == nil {
		var document *teardown.Document
		if document, err = f.report(ctx, work, read); err == nil {
			return cmp.Or(f.recordedEarlier(read, document, outcome), f.codeOf(document, outcome))
		}
	}
	if ctx.Err() != nil {
		return f.interrupted(ctx, work, read)
	}
	return err
}

// recordedEarlier refuses to take the record of an earlier teardown for success: without Alive at the start, a complete
// teardown has deleted what the plan named.
func (f *teardownFlags) recordedEarlier(read *plan.Plan, document *teardown.Document, outcome *runner.Outcome) error {
	if read.Alive != nil || outcome.Phase != teardown.Complete {
		return nil
	}
	recorded := map[string]bool{}
	for i := range document.Items {
		item := &document.Items[i]
		if item.Plan == teardown.PlanDelete {
			recorded[item.Object.UID] = true
		}
		if item.ClaimUID != "" { // the plan may have named the claim, for which the volume was requested
			recorded[item.ClaimUID] = true
		}
	}
	for i := range read.Items {
		if item := &read.Items[i]; item.Plan == teardown.PlanDelete && !recorded[item.Object.UID] {
			return fmt.Errorf("the record is of an earlier teardown: %s %s is to be deleted, and the record does not name it. "+
				"Run %s, then again: %s", item.Object.Kind, strings.TrimPrefix(item.Object.Namespace+"/"+item.Object.Name, "/"),
				f.commands().Exeunt("", "teardown", "remove"), f.command(f.confirm))
		}
	}
	return nil
}

// report prints what became of each item.
func (f *teardownFlags) report(ctx context.Context, work *runner.Runner, read *plan.Plan) (*teardown.Document, error) {
	document, err := work.Report(ctx)
	if err != nil {
		return nil, err
	}
	document.Cluster = read.Cluster
	for _, problem := range read.Problems {
		if !problem.Refuses { // what goes although it is kept, and what is not covered
			document.Problems = append(document.Problems, problem)
		}
	}
	return document, f.print(document, work.Clock.Now())
}

// codeOf returns the exit code, with a sentence unless all to delete is gone.
func (f *teardownFlags) codeOf(document *teardown.Document, outcome *runner.Outcome) error {
	open := slices.ContainsFunc(document.Items, func(item teardown.Item) bool {
		return item.Fate == teardown.Remains || item.Fate == teardown.Unknown
	})
	switch {
	case outcome.Phase == teardown.Complete && !open && len(document.Incomplete) == 0:
		return nil
	case outcome.Phase == teardown.Complete:
		return unfinished(exitWaiting, "the teardown is complete, but not everything is known: see what is unknown, remains "+
			"or is incomplete in the report")
	case document.Started != nil && runner.Stuck(document):
		return unfinished(exitStuck, "not finished, and all that remains is stuck, as the report says (%s: %s). After a "+
			"repair: %s", outcome.Phase, outcome.Message, f.command(f.confirm))
	}
	return unfinished(exitWaiting, "not finished (%s: %s). To go on: %s", outcome.Phase, outcome.Message,
		f.command(f.confirm))
}

func unfinished(code int, format string, values ...any) error {
	return terminal.ExitError{Code: code, Err: fmt.Errorf(format, values...)}
}

// interrupted prints the report after Ctrl-C, what goes on by itself, and how to resume.
func (f *teardownFlags) interrupted(ctx context.Context, work *runner.Runner, read *plan.Plan) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), teardownRequest)
	defer cancel()
	document, err := f.report(ctx, work, read)
	text := "interrupted. Nothing was deleted, but the teardown is permitted: alive-controller carries it out, if it is " +
		"armed"
	switch {
	case err != nil:
		text = fmt.Sprintf("interrupted, and the report could not be made: %v", err)
	case document.Started != nil:
		text = "interrupted: this command deletes nothing more. What it has deleted goes on by itself: pods end, and " +
			"disks, snapshots and load balancers of deleted objects go. alive-controller carries on, if it is armed"
	}
	return unfinished(exitWaiting, "%s. To go on: %s. To stop all: %s", text, f.command(f.confirm),
		f.commands().Exeunt("", "teardown", "--abort"))
}

// runAbort stops a teardown, and prints what came back and what did not.
func (f *teardownFlags) runAbort(ctx context.Context, config *rest.Config, id string) error {
	clients, err := runner.Connect(config, nil)
	if err != nil {
		return err
	}
	done, err := runner.New(runner.Config{Clients: clients, Waits: runner.DefaultWaits(), Cluster: types.UID(id),
		Agent: agent, Commands: f.commands(), Command: true}).Abort(ctx)
	if err != nil {
		return fmt.Errorf("abort: %w; the same command goes on", err)
	}
	lines := done.Undone
	if len(done.Left) > 0 {
		lines = append(append(lines, "not undone:"), done.Left...)
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(f.streams.Out, terminal.Printable(line)); err != nil {
			return err
		}
	}
	for _, next := range done.Next {
		if _, err := fmt.Fprintln(f.streams.Out, "  "+terminal.Printable(next)); err != nil {
			return err
		}
	}
	return nil
}

// commands writes the commands that output shows.
func (f *teardownFlags) commands() cluster.Commands { return commandsOf(f.config, f.program) }

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
	return f.commands().Exeunt("", words...)
}
