package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/exeunt-io/exeunt/pkg/why/printer"
)

const whyLong = `why explains why an object that was deleted is still there, as a tree of blockers: on
which object or controller the deletion waits, since when, by which evidence, and the
next step. It works on any cluster and writes nothing.

The verdict is the worst one of the tree:
  stuck    evidence shows that waiting does not help
  unknown  nothing shows that the blocker will act, and nothing shows that it will not
  waiting  the blocker was seen alive, and reports no error
  none     no deletion was requested
  gone     the object is gone, or never was

What could not be read is named in lines "incomplete: ..." and never counts as absent.
"exeunt explain REASON" says what a reason means and what force would cost.

Exit codes: 0 nothing waits, 1 error, 2 waiting or unknown, 3 stuck. Of several objects
the highest counts.

--probe finds refusals of admission webhooks and policies, which cannot be seen
otherwise: it sends the write that ends the deletion as a dry run. The API server does
not store it. It needs the right to patch the object, and the audit log shows it.`

const whyExample = `  # Why is this volume still there?
  %[1]s why pv/pvc-1234

  # A claim and its pod in a namespace
  %[1]s why pvc/data pod/db-0 -n shop

  # All that waits in the cluster, by what it waits for
  %[1]s why --all

  # All that has waited for more than an hour in a namespace
  %[1]s why --all -n shop --older-than=1h

  # Everything of a manifest; names from another command
  %[1]s why -f app.yaml
  kubectl get pv -o name | %[1]s why -f -

  # Print changes until the object is gone, or was created again
  %[1]s why pod/db-0 -n shop --watch`

// whyFlags are the flags of "exeunt why".
type whyFlags struct {
	program       string // how the user calls exeunt
	config        *genericclioptions.ConfigFlags
	format        printer.Format
	output        string
	files         []string
	timeout       time.Duration
	olderThan     time.Duration
	all           bool
	allNamespaces bool
	watch         bool
	probe         bool
}

// newWhyCommand returns "exeunt why". program is how the user calls the command.
func newWhyCommand(streams genericiooptions.IOStreams, program string) *cobra.Command {
	flags := whyFlags{program: program, config: genericclioptions.NewConfigFlags(true)}
	command := &cobra.Command{
		Use:     "why (KIND/NAME... | KIND NAME... | -f FILE | --all)",
		Short:   "Explain why an object that was deleted is still there",
		Long:    whyLong,
		Example: fmt.Sprintf(whyExample, program),
		RunE: func(command *cobra.Command, words []string) error {
			if err := flags.validate(command, words); err != nil {
				return err
			}
			return newExplanation(&flags, streams).run(command.Context(), words)
		},
		ValidArgsFunction: flags.completeObjects,
	}
	flags.register(command)
	return command
}

// register defines the flags of the command and their completion.
func (f *whyFlags) register(command *cobra.Command) {
	addConnection(command.Flags(), f.config)
	set := command.Flags()
	set.StringVarP(&f.output, "output", "o", "", "json, yaml, wide or name; empty prints a tree")
	set.StringArrayVarP(&f.files, "filename", "f", nil,
		"file with manifests or lines KIND/NAME, - for standard input (repeatable)")
	set.DurationVar(&f.timeout, "timeout", 30*time.Second, "how long to look, at most; what was not seen by then is named")
	set.BoolVar(&f.all, "all", false, "explain all that waits in the cluster, or in the namespace --namespace")
	set.BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, "the same as --all, regardless of --namespace")
	set.DurationVar(&f.olderThan, "older-than", time.Minute,
		"with --all: leave out what has waited less, by the API server's clock")
	set.BoolVarP(&f.watch, "watch", "w", false, "explain one object until it is gone, or there again; print changes only")
	set.BoolVar(&f.probe, "probe", false,
		"also send the write that ends the deletion, as a dry run: finds refusals of webhooks and policies")
	registerCompletion(command, f.config, "json", "yaml", "wide", "name")
}

// validate refuses flags that do not fit together.
func (f *whyFlags) validate(command *cobra.Command, words []string) (err error) {
	if f.format, err = printer.ParseFormat(f.output); err != nil {
		return err
	}
	switch {
	case f.timeout <= 0:
		return errors.New("--timeout must be longer than 0")
	case f.olderThan < 0:
		return errors.New("--older-than must not be negative")
	case f.watch && f.format == printer.Name:
		return errors.New("--watch prints reports: --output must be json, yaml, wide or be left out")
	}
	return f.validateObjects(command, len(words) > 0 || len(f.files) > 0)
}

// validateObjects wants either names or --all, and flags that fit.
func (f *whyFlags) validateObjects(command *cobra.Command, named bool) error {
	switch all := f.all || f.allNamespaces; {
	case all && named:
		return errors.New("--all and --all-namespaces explain all that waits: do not name objects as well")
	case !all && !named:
		return fmt.Errorf("which object? give it as KIND/NAME, or --all; see %s --help", command.CommandPath())
	case all && f.watch:
		return errors.New("--watch explains one object, not --all")
	case !all && command.Flags().Changed("older-than"):
		return errors.New("--older-than selects objects of --all, and no objects that are named")
	}
	return nil
}
