package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/plan"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

const teardownLong = `teardown deletes what Kubernetes made outside of a cluster, before the cluster itself is
deleted: volumes with policy Delete, load balancers, snapshots. It names what stays. Without --confirm it
prints the plan and writes nothing.

--confirm=ID carries the plan out. ID is the UID of the namespace kube-system, or its first 8
characters or more. The same command again goes on. Volumes with policy Retain, volumes that an
administrator made, and whatever has the label lifecycle.exeunt.io/preserve stay as they are.
From then on the cluster takes no new claims, load balancers, snapshots and pods with claims,
until "exeunt teardown remove".

What is deleted cannot be brought back. Ctrl-C stops this command, --abort the teardown: before
the start it undoes all, later it saves the disks of claims that are not gone yet.

Exit codes: 0 all that was to be deleted is gone, 1 error, 2 not finished, 3 not finished, and all
that remains is stuck by evidence, 4 refused, nothing was written. The plan alone: 0, or 4 with
what would refuse.`

const teardownExample = `  # what would be deleted, what stays, and what would refuse?
  %[1]s teardown
  # where the ID comes from
  kubectl get namespace kube-system -o jsonpath={.metadata.uid}
  # carry it out, and keep one volume
  %[1]s teardown --confirm=ID --preserve pvc/shop/orders
  # stop it
  %[1]s teardown --abort`

const (
	// minTimeout and maxTimeout bound --timeout, as the kind Alive does.
	minTimeout, maxTimeout = alive.MinTimeout, alive.MaxTimeout
	// teardownRequest limits each request.
	teardownRequest = time.Minute
)

// teardownFlags are the flags of "exeunt teardown".
type teardownFlags struct {
	program   string // how the user calls exeunt
	config    *genericclioptions.ConfigFlags
	streams   genericiooptions.IOStreams
	output    string
	confirm   string
	confirmed bool
	timeout   teardownTimeout
	preserve  []string
	last      []string
	others    []string
	abort     bool
}

// newTeardownCommand returns "exeunt teardown". program is how the user calls the command.
func newTeardownCommand(streams genericiooptions.IOStreams, program string) *cobra.Command {
	flags := &teardownFlags{program: program, config: genericclioptions.NewConfigFlags(true), streams: streams,
		timeout: teardownTimeout(alive.DefaultTimeout)}
	flags.config.Namespace = nil // the command reads the whole cluster
	command := &cobra.Command{
		Use:     "teardown",
		Short:   "Delete what Kubernetes made outside of a cluster that goes away",
		Long:    teardownLong,
		Example: fmt.Sprintf(teardownExample, program),
		Args:    terminal.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			flags.confirmed = command.Flags().Changed("confirm")
			return flags.run(command.Context())
		},
	}
	command.SetFlagErrorFunc(flags.explain)
	command.AddCommand(newTeardownRemoveCommand(streams, program))
	addConnection(command.Flags(), flags.config)
	set := command.Flags()
	set.StringVarP(&flags.output, "output", "o", "", "json or yaml prints one document; empty prints text")
	set.StringVar(&flags.confirm, "confirm", "", "the ID of the cluster: carry out the plan")
	set.Var(&flags.timeout, "timeout", "how long the permission lasts, 1m to 24h")
	set.StringArrayVar(&flags.preserve, "preserve", nil,
		"KIND/[NAMESPACE/]NAME to keep; kinds: "+preservedKinds+"; repeatable")
	set.StringArrayVar(&flags.last, "last", nil, "namespace that goes last, as it serves volumes of others; repeatable")
	set.StringArrayVar(&flags.others, "other-kubeconfig", nil, "kubeconfig of a cluster whose volumes stay; repeatable")
	set.BoolVar(&flags.abort, "abort", false, "stop a teardown, and undo what can be undone")
	registerCompletion(command, flags.config, "json", "yaml")
	return command
}

// explain refuses a --confirm without a value as one that names no cluster.
func (f *teardownFlags) explain(command *cobra.Command, err error) error {
	var missing *pflag.ValueRequiredError
	if errors.As(err, &missing) && missing.GetFlag().Name == "confirm" {
		f.confirm, f.confirmed = "", true // all other flags are read: only the last one lacks its value
		return f.run(command.Context())
	}
	return explainFlag(command, err)
}

// refused returns an error with exit code 4: nothing was written.
func refused(format string, values ...any) error {
	return terminal.ExitError{Code: exitRefused, Err: fmt.Errorf(format, values...)}
}

// teardownTimeout is the value of --timeout.
type teardownTimeout time.Duration

// String returns the duration.
func (t *teardownTimeout) String() string { return time.Duration(*t).String() }

// Type returns the name of the type in the help.
func (t *teardownTimeout) Type() string { return "time" }

// Set reads the duration.
func (t *teardownTimeout) Set(text string) error {
	value, err := time.ParseDuration(text)
	switch {
	case err != nil && isDays(text):
		return errors.New("a day is 24h, which is the most")
	case err != nil:
		return errors.New("it must be a time from 1m to 24h, such as 90m or 1h30m")
	case value < minTimeout:
		return errors.New("it must be 1m at least, such as 90m or 1h30m")
	case value > maxTimeout:
		return errors.New("it must be 24h at most")
	case value%time.Second != 0: // the CRD takes hours, minutes and seconds
		return errors.New("it must be in whole seconds, such as 90s")
	}
	*t = teardownTimeout(value)
	return nil
}

// isDays reports whether the text is a number of days.
func isDays(text string) bool {
	number, found := strings.CutSuffix(text, "d")
	_, err := strconv.Atoi(number)
	return found && err == nil
}

// run plans, carries out or aborts. After Ctrl-C a confirmed teardown is not finished, however far the command got.
func (f *teardownFlags) run(ctx context.Context) error {
	err := f.runUntilDone(ctx)
	var coded terminal.ExitError
	if err == nil || ctx.Err() == nil || !f.confirmed || errors.As(err, &coded) {
		return err
	}
	return unfinished(exitWaiting, "interrupted before this command permitted or deleted anything; labels of --preserve "+
		"may be set. To go on: %s", f.command(f.confirm))
}

// validate refuses wrong values.
func (f *teardownFlags) validate() error {
	switch {
	case f.output != "" && f.output != "json" && f.output != "yaml":
		return fmt.Errorf("--output must be json, yaml or be left out, not %q", f.output)
	case f.abort && (f.confirmed || f.output != "" || len(f.preserve)+len(f.last)+len(f.others) > 0):
		return errors.New("--abort stops a teardown: no other flag but those of the connection goes with it")
	case slices.Contains(f.others, ""): // it would be the kubeconfig of the environment
		return refused("--other-kubeconfig is empty: it must name the kubeconfig of a cluster; nothing was written")
	}
	return nil
}

func (f *teardownFlags) runUntilDone(ctx context.Context) error {
	if err := f.validate(); err != nil {
		return err
	}
	targets, err := f.targets()
	if err != nil {
		return err
	}
	reader, config, err := f.connect(ctx, f.config)
	if err != nil {
		return err
	}
	system, presence := cluster.Get(ctx, reader, cluster.Namespaces, "", metav1.NamespaceSystem)
	switch {
	case f.abort && presence == cluster.Present:
		return f.runAbort(ctx, config, string(system.UID))
	case f.abort:
		return errors.New("the ID of the cluster, the UID of namespace kube-system, could not be read: nothing was aborted")
	case f.confirmed && presence == cluster.Present:
		if err := f.checkID(string(system.UID), config.Host); err != nil {
			return err
		}
	}
	return f.decide(ctx, config, plan.Options{Reader: reader, Commands: f.commands(), Server: config.Host,
		Preserve: targets, Last: f.last})
}

// decide prints the plan, or carries it out.
func (f *teardownFlags) decide(ctx context.Context, config *rest.Config, options plan.Options) (err error) {
	if options.Others, err = f.readers(ctx); err != nil {
		return err
	}
	read := plan.Read(ctx, options)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !f.confirmed || read.Cluster.ID == "" || refuses(read) {
		return f.printPlan(read, options.Reader.Now())
	}
	// The address may lead to another cluster since: the ID that counts is that of the plan.
	if err := f.checkID(read.Cluster.ID, config.Host); err != nil {
		return err
	}
	return f.carryOut(ctx, config, read, options)
}

// lasting are the reasons that refuse after the start, too: what the person of the command did wrong, and disks of
// another cluster that are not known, which would be deleted.
var lasting = []string{"RightsMissing", "PreserveMissing", "LastMissing", "SameCluster", "OtherUnreadable"}

// refuses reports whether something refuses to begin, or to go on: what is missing only because of the teardown itself
// refuses no more once it has started.
func refuses(read *plan.Plan) bool {
	started := read.Alive != nil && read.Alive.IsDeleted() && read.Alive.IsStarted()
	for _, problem := range read.Problems {
		if problem.Refuses && (!started || slices.Contains(lasting, problem.Reason)) {
			return true
		}
	}
	return false
}

// printPlan prints the plan, with exit code 4 if something refuses.
func (f *teardownFlags) printPlan(read *plan.Plan, now time.Time) error {
	if err := f.print(&read.Document, now); err != nil {
		return err
	}
	switch {
	case read.Refuses():
		return refused("refused, as the plan says: nothing was written")
	case f.output == "" && read.Cluster.ID != "":
		_, err := fmt.Fprintf(f.streams.Out, "\nThis is the plan; nothing was written. To carry it out:\n  %s\n",
			f.command(read.Cluster.ID[:min(minID, len(read.Cluster.ID))]))
		return err
	}
	return nil
}

func (f *teardownFlags) print(document *teardown.Document, now time.Time) error {
	if f.output != "" {
		return plan.Encode(f.streams.Out, document, f.output)
	}
	return plan.Print(f.streams.Out, document, now)
}

// connect returns a reader of the cluster of the flags.
func (f *teardownFlags) connect(ctx context.Context, flags *genericclioptions.ConfigFlags) (*cluster.Reader,
	*rest.Config, error) {
	config, err := restConfigOf(flags)
	if err != nil {
		return nil, nil, err
	}
	reading := rest.CopyConfig(config)
	if reading.Timeout == 0 { // --request-timeout is not set
		reading.Timeout = teardownRequest
	}
	reader, err := cluster.NewReader(reading)
	if err != nil {
		return nil, nil, err
	}
	return reader, config, reachWithin(ctx, reader, config.Host, reading.Timeout, "--request-timeout")
}

// readers returns the readers of --other-kubeconfig.
func (f *teardownFlags) readers(ctx context.Context) ([]plan.Other, error) {
	var others []plan.Other
	for _, file := range f.others {
		flags := genericclioptions.NewConfigFlags(true)
		flags.KubeConfig = &file
		reader, _, err := f.connect(ctx, flags)
		if err != nil {
			return nil, fmt.Errorf("--other-kubeconfig %s: %w", file, err)
		}
		others = append(others, plan.Other{Name: file, Reader: reader})
	}
	return others, nil
}
