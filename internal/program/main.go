package program

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
)

// Main runs the command and exits: with 0, or with 1 after one sentence on stderr.
func Main(name string, newCommand func() (*cobra.Command, error)) {
	command, err := newCommand()
	if err == nil {
		command.SilenceErrors, command.SilenceUsage = true, true
		err = cli.RunNoErrOutput(command)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
	os.Exit(0)
}
