package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/exeunt-io/exeunt/pkg/rollback"
	"github.com/exeunt-io/exeunt/pkg/rollback/runner"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"

	"github.com/exeunt-io/exeunt/internal/terminal"
)

// rollbackFlags are the flags of "exeunt rollback".
type rollbackFlags struct {
	program string // how the user calls exeunt
	config  *genericclioptions.ConfigFlags
	output  string
	options runner.Options
}

const rollbackLong = `rollback returns to upstream's programs, step by step. It prints a numbered plan: each step is
done, pending or blocked. Without --confirm nothing is changed. With --confirm it carries out
what can be done now, and prints what is left: run it again until nothing is left.

It removes the admission policy, the annotations and finalizers exeunt.io/* and the Leases of
Exeunt. Workloads belong to charts and manifests: it prints the commands and waits until the
programs are replaced. Open entries of the provisioning journal are saved to a file before
their Leases are removed. Finalizers that upstream's programs remove as well stay, unless you
say that nobody serves them and nobody is seen. It does not replace garbage-collector, which
docs/garbage-collector.md describes, nor node-terminator: see "rollback nodes".

Once kube-apiserver is upstream's again, on each control plane, or its gate is off, it rewrites
the deadline of each custom resource in its grace period in another spelling, so that informers
of controllers get an event. No deadline moves. While the API server is that of Exeunt, with the
gate on, it rewrites none. If kube-apiserver alone goes back, and the other programs of Exeunt
stay, use --deadlines-only.

Exit codes: 0 nothing is left, 1 error, 2 something is left or a name in --unserved or --abandon-disk
is near to one that is there, 4 you have to decide first.`

const rollbackExample = `  # what is left to do?
  %[1]s rollback
  # carry out what can be done now
  %[1]s rollback --confirm
  # the provisioner of this driver ran without leader election, and has been replaced
  %[1]s rollback --confirm --stopped csi.example.com
  # the driver is uninstalled for good: its volumes may go, their disks stay
  %[1]s rollback --confirm --unserved csi.example.com
  # kube-apiserver was replaced by upstream's, and the other programs of Exeunt stay
  %[1]s rollback --confirm --deadlines-only`

// newRollbackCommand returns "exeunt rollback". program is how the user calls the command.
func newRollbackCommand(streams genericiooptions.IOStreams, program string) *cobra.Command {
	flags := rollbackFlags{program: program, config: genericclioptions.NewConfigFlags(true)}
	flags.config.Namespace = nil // the command reads the whole cluster
	command := &cobra.Command{
		Use:     "rollback",
		Short:   "Return to upstream's programs, and leave nothing of Exeunt behind",
		Long:    rollbackLong,
		Example: fmt.Sprintf(rollbackExample, program),
		Args:    terminal.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			return flags.run(command, streams)
		},
	}
	command.AddCommand(newRollbackNodesCommand(streams, program))
	flags.register(command)
	o := &flags.options
	command.Flags().StringVar(&o.Save, "save", "",
		"new file for open entries of the journal; never overwritten (default ./exeunt-journal-<time>.yaml)")
	command.Flags().StringSliceVar(&o.Stopped, "stopped", nil,
		"drivers whose provisioner of Exeunt has ended for good although no Lease shows it; pv-controller for that program")
	command.Flags().StringSliceVar(&o.Unserved, "unserved", nil,
		"drivers that are uninstalled for good: remove the finalizers of their volumes; the disks stay in storage")
	command.Flags().BoolVar(&o.UnservedLoops, "unserved-loops", false,
		"no program runs the loops for volumes any more: remove their finalizers as well")
	command.Flags().StringSliceVar(&o.AbandonDisk, "abandon-disk", nil,
		"PersistentVolumes whose disk may stay in storage: remove exeunt.io/reclaim although only Exeunt would delete the disk")
	command.Flags().BoolVar(&o.DeadlinesOnly, "deadlines-only", false,
		"rewrite the deadlines of custom resources, and leave everything else to the programs of Exeunt")
	return command
}

const rollbackNodesLong = `rollback nodes takes the finalizer exeunt.io/node-termination and the annotations of
node-terminator off all Nodes, and off NodeClaims of the group lifecycle.exeunt.io, that are not
being deleted. It names those that are, and leaves them: node-terminator ends them. Without
--confirm nothing is changed. Run it before you uninstall node-terminator: without the program
nobody removes its finalizer, and no Node with it could be deleted.

If node-terminator runs, and no node is being deleted, its leader Lease is taken for five minutes,
or it would add each finalizer again: uninstall it within them.

Exit codes: 0 nothing is left, 1 error, 2 something is left.`

const rollbackNodesExample = `  # which nodes have the finalizer?
  %[1]s rollback nodes
  # take it off those that are not being deleted
  %[1]s rollback nodes --confirm`

// newRollbackNodesCommand returns "exeunt rollback nodes". program is how the user calls the command.
func newRollbackNodesCommand(streams genericiooptions.IOStreams, program string) *cobra.Command {
	flags := rollbackFlags{program: program, config: genericclioptions.NewConfigFlags(true)}
	flags.config.Namespace = nil // nodes have none
	flags.options.NodesOnly = true
	command := &cobra.Command{
		Use:     "nodes",
		Short:   "Take the finalizer of node-terminator off all nodes that are not being deleted",
		Long:    rollbackNodesLong,
		Example: fmt.Sprintf(rollbackNodesExample, program),
		Args:    terminal.NoArguments,
		RunE:    func(command *cobra.Command, _ []string) error { return flags.run(command, streams) },
	}
	flags.register(command)
	return command
}

// register defines the flags that both commands have.
func (f *rollbackFlags) register(command *cobra.Command) {
	addConnection(command.Flags(), f.config)
	set := command.Flags()
	set.StringVarP(&f.output, "output", "o", "", "json or yaml prints the plan with all objects; empty prints text")
	set.BoolVar(&f.options.Confirm, "confirm", false, "carry out what can be done now")
	set.DurationVar(&f.options.Timeout, "timeout", time.Minute,
		"how long to read the cluster; what was not read by then is named")
	registerCompletion(command, f.config, "json", "yaml")
}

// validate refuses wrong values.
func (f *rollbackFlags) validate() error {
	if f.output != "" && f.output != "json" && f.output != "yaml" {
		return fmt.Errorf("--output must be json, yaml or be left out, not %q", f.output)
	}
	if f.options.Timeout <= 0 {
		return errors.New("--timeout must be longer than 0")
	}
	o := f.options
	if o.DeadlinesOnly && (o.Save != "" || o.UnservedLoops || len(o.Stopped)+len(o.Unserved)+len(o.AbandonDisk) > 0) {
		return errors.New("--deadlines-only leaves volumes alone: leave out --save, --stopped, --unserved, " +
			"--unserved-loops and --abandon-disk")
	}
	return nil
}

// connect sets how the cluster is read, and returns an error if the API server is not reached.
func (f *rollbackFlags) connect(ctx context.Context) error {
	config, err := restConfigOf(f.config)
	if err != nil {
		return err
	}
	reader, err := cluster.NewReader(config)
	if err != nil {
		return err
	}
	f.options.Connect = func() (*cluster.Reader, error) { return cluster.NewReader(config) }
	return reach(ctx, reader, config.Host, f.options.Timeout)
}

func (f *rollbackFlags) run(command *cobra.Command, streams genericiooptions.IOStreams) error {
	if err := f.validate(); err != nil {
		return err
	}
	if err := f.connect(command.Context()); err != nil {
		return err
	}
	f.options.Commands = commandsOf(f.config, f.program)
	f.options.Progress = f.progress(streams)
	plan, err := runner.Run(command.Context(), f.options)
	if err != nil {
		return err
	}
	if err := plan.Print(streams.Out, f.output); err != nil {
		return err
	}
	switch plan.Outcome() {
	case rollback.SomethingLeft:
		return terminal.ExitError{Code: exitWaiting, Err: nil}
	case rollback.DecisionNeeded:
		return terminal.ExitError{Code: exitRefused, Err: nil}
	case rollback.NothingLeft:
	}
	return nil
}

// progress returns where changes are reported: beside the plan in JSON or YAML.
func (f *rollbackFlags) progress(streams genericiooptions.IOStreams) io.Writer {
	if f.output == "" {
		return streams.Out
	}
	return streams.ErrOut
}
