package program

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/component-base/cli"
)

// Runner is a program and its flags.
type Runner interface {
	// AddFlags registers the flags, whose defaults are set.
	AddFlags(flags *pflag.FlagSet)
	// Complete checks the flags. Its error names the flag at fault.
	Complete() error
	// Run runs until the context ends, and then returns nil.
	Run(ctx context.Context) error
}

// Main runs the program that newRunner returns, and exits with 0, or with 1 after one
// sentence on stderr. The command has name and help, and may take arguments.
func Main(command *cobra.Command, newRunner func() (Runner, error)) {
	runner, err := newRunner()
	if err == nil {
		addRunner(command, runner)
		err = cli.RunNoErrOutput(command)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", command.Name(), err)
		os.Exit(1)
	}
	os.Exit(0)
}

// addRunner gives the command the flags of the runner, and lets the command run it.
func addRunner(command *cobra.Command, runner Runner) {
	if command.Args == nil {
		command.Args = cobra.NoArgs
	}
	command.SilenceErrors, command.SilenceUsage = true, true // Main prints the one sentence
	version := versionFlag("false")
	version.add(command.Flags())
	runner.AddFlags(command.Flags())
	command.SetFlagErrorFunc(func(command *cobra.Command, err error) error { return flagError(command.Flags(), err) })
	command.RunE = func(*cobra.Command, []string) error {
		if printed, err := version.print(command.OutOrStdout(), command.Name()); printed || err != nil {
			return err
		}
		if err := runner.Complete(); err != nil {
			return err
		}
		ctx, stop := signalContext(command.Name())
		defer stop()
		return runner.Run(ctx)
	}
}
