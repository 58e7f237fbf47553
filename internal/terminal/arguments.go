package terminal

import (
	"fmt"

	"github.com/spf13/cobra"
)

// RejectUnknown refuses an unknown subcommand, and suggests a similar one.
func RejectUnknown(command *cobra.Command, words []string) error {
	if len(words) == 0 {
		return nil
	}
	hint := "see " + command.CommandPath() + " --help"
	var names []string
	for _, known := range command.Commands() {
		names = append(names, known.Name())
	}
	if meant := Closest(words[0], names); meant != "" {
		hint = "did you mean " + meant + "?"
	}
	return fmt.Errorf("unknown command %q, %s", words[0], hint)
}

// NoArguments refuses arguments.
func NoArguments(command *cobra.Command, words []string) error {
	if len(words) == 0 {
		return nil
	}
	return fmt.Errorf("%s takes no arguments, not %q, see %[1]s --help", command.CommandPath(), words[0])
}
