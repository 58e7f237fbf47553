package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/component-base/version"

	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// pluginName is the file name under which kubectl finds the program as a plugin.
const pluginName = "kubectl-exeunt"

// newCommand returns the command with its subcommands; program is the file name of the
// running program.
func newCommand(program string, streams genericiooptions.IOStreams) *cobra.Command {
	called := "exeunt"
	if program == pluginName || program == completionName {
		called = "kubectl exeunt"
	}
	command := &cobra.Command{
		Use:           "exeunt",
		Short:         "Explain why deleted objects are still there, and find volumes that are left behind",
		Args:          terminal.RejectUnknown,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: called}
	command.SetOut(streams.Out)
	command.SetErr(streams.ErrOut)
	command.SetFlagErrorFunc(explainFlag)
	command.AddCommand(
		newWhyCommand(streams, called),
		newExplainCommand(streams, called),
		newDeleteCommand(streams, called),
		newForecastCommand(streams, called),
		newStatusCommand(streams, called),
		newAuditCommand(streams, called),
		newJournalCommand(streams),
		newRollbackCommand(streams, called),
		newTeardownCommand(streams, called),
		newVersionCommand(streams),
	)
	setUsage(command)
	return command
}

// explainFlag explains a wrong flag. A command that has subcommands lacks the flags of a misspelled one.
func explainFlag(command *cobra.Command, err error) error {
	if command.HasSubCommands() {
		if unknown := terminal.RejectUnknown(command, command.Flags().Args()); unknown != nil {
			return unknown
		}
	}
	return terminal.ExplainFlag(command.Flags(), err, command.CommandPath()+" --help")
}

// commandsOf writes the commands that output shows. They reach the cluster of the flags; program is how the user calls
// exeunt.
func commandsOf(config *genericclioptions.ConfigFlags, program string) cluster.Commands {
	return cluster.Commands{Kubeconfig: *config.KubeConfig, Context: *config.Context, Cluster: *config.ClusterName,
		Server: *config.APIServer, User: *config.AuthInfoName, As: *config.Impersonate, AsUID: *config.ImpersonateUID,
		AsGroups: *config.ImpersonateGroup, AsExtra: *config.ImpersonateUserExtra, Program: program}
}

// newVersionCommand returns "exeunt version".
func newVersionCommand(streams genericiooptions.IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  terminal.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(streams.Out, "exeunt", version.Get().GitVersion)
			return err
		},
	}
}
