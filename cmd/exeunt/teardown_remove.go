package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/teardown/uninstall"
)

const teardownRemoveLong = `teardown remove deletes what a teardown has installed: the freeze, the policies with
their bindings, Alive and its CRD. The cluster takes new volumes and load balancers again. It is the way back after
a teardown whose cluster stays.

It is refused while participants are registered with Alive, or a teardown is in progress. The
namespace exeunt-system with the record of teardowns stays.

Exit codes: 0 all is removed, 1 error, 4 refused, nothing was removed.`

// newTeardownRemoveCommand returns "exeunt teardown remove".
func newTeardownRemoveCommand(streams genericiooptions.IOStreams, program string) *cobra.Command {
	flags := &teardownFlags{program: program, config: genericclioptions.NewConfigFlags(true), streams: streams}
	flags.config.Namespace = nil // nothing that is removed has one
	command := &cobra.Command{
		Use:   "remove",
		Short: "Uninstall Alive with its policies, for a cluster that stays",
		Long:  teardownRemoveLong,
		Args:  terminal.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			return flags.remove(command.Context())
		},
	}
	addConnection(command.Flags(), flags.config)
	registerCompletion(command, flags.config)
	return command
}

func (f *teardownFlags) remove(ctx context.Context) error {
	reader, _, err := f.connect(ctx, f.config)
	if err != nil {
		return err
	}
	count := 0
	remover := &uninstall.Remover{Reader: reader, Commands: f.commands(), Say: func(text string) {
		count++
		_, _ = fmt.Fprintln(f.streams.Out, terminal.Printable(text))
	}}
	if err := remover.Run(ctx); errors.Is(err, uninstall.ErrRefused) {
		return terminal.ExitError{Code: exitRefused, Err: err}
	} else if err != nil {
		return err
	}
	if count == 0 {
		_, err = fmt.Fprintln(f.streams.Out, "nothing of a teardown is installed")
	}
	return err
}
