package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"github.com/exeunt-io/exeunt/pkg/status"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"

	"github.com/exeunt-io/exeunt/internal/terminal"
)

// statusFlags are the flags of "exeunt status".
type statusFlags struct {
	program      string // how the user calls exeunt
	config       *genericclioptions.ConfigFlags
	output       string
	beforeSwitch bool
	accounts     []string
	timeout      time.Duration
}

const statusLong = `status says whether volumes are protected against a leak: for each driver, who provisions, the
version and the gate as image and arguments say, and how many volumes with policy Delete have
the finalizer of their provisioner (SAFE), or would leave their disks behind if they were
deleted before their claims (LEAK). It also shows leader Leases by the clock of the API
server, the provisioning journal, the admission policy, which loops write phases, and nodes with
the label or the finalizer of node-terminator: whether it lives and has its rights, which labels
are not served, and which nodes are past their deadline. In a cluster with Alive, or after a
teardown, it shows the phase, who carries the teardown out, participants, whether the right to
delete is bound, and whether the freeze is in force or left behind.

It changes nothing, and needs nothing of Exeunt in the cluster. A provisioner without pods,
as in a managed cluster, is found by its Lease, else by the volume that was created last.

Exit codes: 0 nothing was found that leaks or waits, 1 error, 2 something leaks, waits, is
switched off or could not be read.`

const statusExample = `  # is the protection on?
  %[1]s status
  # what does a switch to Exeunt delete, and which rights are missing?
  %[1]s status --before-switch --service-account storage/csi-hostpath`

// newStatusCommand returns "exeunt status". program is how the user calls the command.
func newStatusCommand(streams genericiooptions.IOStreams, program string) *cobra.Command {
	flags := statusFlags{program: program, config: genericclioptions.NewConfigFlags(true)}
	flags.config.Namespace = nil // the command reads the whole cluster
	command := &cobra.Command{
		Use:     "status",
		Short:   "Show whether volumes are protected against a leak",
		Long:    statusLong,
		Example: fmt.Sprintf(statusExample, program),
		Args:    terminal.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			return flags.run(command.Context(), streams)
		},
	}
	addConnection(command.Flags(), flags.config)
	set := command.Flags()
	set.StringVarP(&flags.output, "output", "o", "", "json, yaml or wide; empty prints tables of 80 columns")
	set.BoolVar(&flags.beforeSwitch, "before-switch", false,
		"also list the volumes that a switch to Exeunt deletes, and the rights that its programs lack")
	set.StringSliceVar(&flags.accounts, "service-account", nil,
		"with --before-switch: service accounts of drivers, as NAMESPACE/NAME")
	set.DurationVar(&flags.timeout, "timeout", time.Minute,
		"how long to read the cluster; what was not read by then is named")
	registerCompletion(command, flags.config, "json", "yaml", "wide")
	return command
}

// validate refuses wrong values.
func (f *statusFlags) validate() error {
	switch f.output {
	case "", "json", "yaml", "wide":
	default:
		return fmt.Errorf("--output must be json, yaml, wide or be left out, not %q", f.output)
	}
	if f.timeout <= 0 {
		return errors.New("--timeout must be longer than 0")
	}
	if len(f.accounts) > 0 && !f.beforeSwitch {
		return errors.New("--service-account is for --before-switch")
	}
	for _, account := range f.accounts {
		if namespace, name, found := strings.Cut(account, "/"); !found || namespace == "" || name == "" {
			return fmt.Errorf("--service-account must be NAMESPACE/NAME, not %q", account)
		}
	}
	return nil
}

func (f *statusFlags) run(ctx context.Context, streams genericiooptions.IOStreams) error {
	if err := f.validate(); err != nil {
		return err
	}
	config, err := restConfigOf(f.config)
	if err != nil {
		return err
	}
	if config.Timeout == 0 { // requests of discovery take no context
		config = rest.CopyConfig(config)
		config.Timeout = f.timeout
	}
	reader, err := cluster.NewReader(config)
	if err != nil {
		return err
	}
	if err := reach(ctx, reader, config.Host, f.timeout); err != nil {
		return err
	}
	reading, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	report := status.Read(reading, status.Options{
		Reader: reader, Commands: commandsOf(f.config, f.program), BeforeSwitch: f.beforeSwitch, Accounts: f.accounts,
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := report.Print(streams.Out, f.output); err != nil {
		return err
	}
	return protectionOutcome(report)
}

// protectionOutcome returns the exit code of the report, with a sentence that says why it is not 0.
func protectionOutcome(report status.Report) error {
	switch report.Protection {
	case status.ProtectionOn:
		if report.Nodes != nil && len(report.Nodes.Findings) > 0 {
			return terminal.ExitError{Code: exitWaiting,
				Err: errors.New("nodes cannot end as they should: the lines with \"!\" below NODES say why")}
		}
		if report.Teardown != nil && len(report.Teardown.Findings) > 0 {
			return terminal.ExitError{Code: exitWaiting,
				Err: errors.New("the teardown is not as it should be: the lines with \"!\" below TEARDOWN say why")}
		}
		return nil
	case status.ProtectionUnknown:
		return terminal.ExitError{Code: exitWaiting,
			Err: errors.New("whether volumes are protected is not known: the lines \"incomplete\" above say what could not be read")}
	case status.ProtectionPartly:
	}
	return terminal.ExitError{Code: exitWaiting,
		Err: errors.New("volumes are not all protected: the findings above, the lines with \"!\", say why")}
}
