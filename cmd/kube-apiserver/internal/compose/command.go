package compose

import (
	"github.com/spf13/cobra"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/cli/globalflag"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/term"
	"k8s.io/component-base/version/verflag"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// NewCommand returns upstream's command with our server: its words, arguments and context are those of upstream. The
// flags are defined again, because upstream's command keeps its options to itself.
func NewCommand() *cobra.Command {
	addGate()
	command := app.NewAPIServerCommand()
	command.ResetFlags()
	server := options.NewServerRunOptions()
	sections := server.Flags()
	server.Flagz = flagReader(sections)
	global := sections.FlagSet("global")
	verflag.AddFlags(global)
	globalflag.AddGlobalFlags(global, command.Name(), logs.SkipLoggingConfigurationFlags())
	for _, section := range sections.FlagSets {
		command.Flags().AddFlagSet(section)
	}
	columns, _, _ := term.TerminalSize(command.OutOrStdout())
	cliflag.SetUsageAndHelpFunc(command, sections, columns)
	command.RunE = func(command *cobra.Command, _ []string) error { return start(command, server) }
	return command
}

// start completes the options as upstream does, and runs the server.
func start(command *cobra.Command, server *options.ServerRunOptions) error {
	verflag.PrintAndExitIfRequested()
	registry := server.GenericServerRunOptions.ComponentGlobalsRegistry
	gates := registry.FeatureGateFor(basecompatibility.DefaultKubeComponent)
	if err := logsapi.ValidateAndApply(server.Logs, gates); err != nil {
		return err
	}
	cliflag.PrintFlags(command.Flags())
	completed, err := server.Complete(command.Context())
	if err != nil {
		return err
	}
	if errs := completed.Validate(); len(errs) != 0 {
		return utilerrors.NewAggregate(errs)
	}
	if mutable, ok := gates.(featuregate.MutableFeatureGate); ok {
		mutable.AddMetrics()
	}
	registry.AddMetrics()
	return Run(command.Context(), completed)
}
