package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/exeunt-io/exeunt/internal/program/flagerrors"
)

// pluginName is the file name under which kubectl finds the program as a plugin.
const pluginName = "kubectl-exeunt"

// newCommand returns the command with its subcommands; program is the file name of the
// running program.
func newCommand(program string, streams genericiooptions.IOStreams) *cobra.Command {
	command := &cobra.Command{
		Use:           "exeunt",
		Short:         "Show how persistent volumes are reclaimed, and end unresolved journal entries",
		Args:          rejectUnknown,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	if program == pluginName {
		command.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl exeunt"}
	}
	command.SetOut(streams.Out)
	command.SetErr(streams.ErrOut)
	command.SuggestionsMinimumDistance = 2
	command.CompletionOptions.DisableDefaultCmd = true
	command.SetFlagErrorFunc(func(command *cobra.Command, err error) error {
		return flagerrors.Explain(command.Flags(), err, command.CommandPath()+" --help")
	})
	command.AddCommand(newDemoCommand(streams), newSandboxCommand(streams), newJournalCommand(streams), newWhyCommand(streams), newVersionCommand(streams))
	return command
}

// rejectUnknown refuses an unknown subcommand, and suggests a similar one.
func rejectUnknown(command *cobra.Command, words []string) error {
	if len(words) == 0 {
		return nil
	}
	hint := "see " + command.CommandPath() + " --help"
	if meant := command.SuggestionsFor(words[0]); len(meant) > 0 {
		hint = "did you mean " + meant[0] + "?"
	}
	return fmt.Errorf("unknown command %q, %s", words[0], hint)
}

// noArguments refuses arguments.
func noArguments(command *cobra.Command, words []string) error {
	if len(words) == 0 {
		return nil
	}
	return fmt.Errorf("%s takes no arguments, not %q, see %[1]s --help", command.CommandPath(), words[0])
}
