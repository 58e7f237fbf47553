package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/forecast"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/reference"
)

// exitCut is the exit code of a forecast that says that something is cut short.
const exitCut = 2

const forecastLong = `forecast says what would happen to the pods and disks of a node if the node were deleted now:
when each pod may go, until when it goes at the latest, what keeps it (budgets with their
numbers, do-not-disrupt, order, finalizers), and what it would miss: seconds of its grace
period, or a budget that is broken. It names what does not come back, and which disks are
awaited. It writes nothing, and needs nothing of Exeunt in the cluster.

The period is that of --grace-period, else of the node's NodeClaim, else of its label
exeunt.io/termination-grace-period. Without any there is no deadline, and what is shown is the
drain alone. The forecast holds if nothing changes but by the drain: a replacement that becomes
Ready gives a budget room. Which webhooks refuse evictions it cannot know.

Exit codes: 0 nothing is cut short, 1 error, or not everything could be read, 2 something is
cut short.`

const forecastExample = `  # What would be cut short within half an hour?
  %[1]s forecast node/worker-1 --grace-period=30m

  # By the label or the claim of the node
  %[1]s forecast node/worker-1

  # Pods that would miss something, for a program
  %[1]s forecast node/worker-1 -o json | jq '.pods[] | select(.misses.graceSeconds > 0 or .misses.against != [])'`

// forecastFlags are the flags of "exeunt forecast".
type forecastFlags struct {
	config  *genericclioptions.ConfigFlags
	period  string
	output  string
	timeout time.Duration
}

// newForecastCommand returns "exeunt forecast". program is how the user calls the command.
func newForecastCommand(streams genericiooptions.IOStreams, program string) *cobra.Command {
	flags := forecastFlags{config: genericclioptions.NewConfigFlags(true)}
	flags.config.Namespace = nil // nodes have none
	command := &cobra.Command{
		Use:     "forecast (node/NAME | node NAME)",
		Short:   "Say what a node's pods would miss if it were deleted now",
		Long:    forecastLong,
		Example: fmt.Sprintf(forecastExample, program),
		RunE: func(command *cobra.Command, words []string) error {
			if err := flags.validate(); err != nil {
				return err
			}
			if len(words) == 0 {
				return fmt.Errorf("which node? give it as node/NAME; see %s --help", command.CommandPath())
			}
			return flags.run(command.Context(), streams, words)
		},
		ValidArgsFunction: (&whyFlags{config: flags.config}).completeObjects,
	}
	addConnection(command.Flags(), flags.config)
	set := command.Flags()
	set.StringVar(&flags.period, "grace-period", "",
		"how long the termination may take, such as 30m or 1h30m, or Never; empty takes that of the node")
	set.StringVarP(&flags.output, "output", "o", "", "json; empty prints text")
	set.DurationVar(&flags.timeout, "timeout", 30*time.Second, "how long to read, at most")
	registerCompletion(command, flags.config, "json")
	return command
}

// validate refuses wrong values.
func (f *forecastFlags) validate() error {
	if f.output != "" && f.output != "json" {
		return fmt.Errorf("--output must be json or be left out, not %q", f.output)
	}
	if f.timeout <= 0 {
		return errors.New("--timeout must be longer than 0")
	}
	return nil
}

func (f *forecastFlags) run(ctx context.Context, streams genericiooptions.IOStreams, words []string) error {
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
	limited, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	report, err := within(limited, grace, func() (forecast.Report, error) {
		node, err := nodeOf(reader, words)
		if err != nil {
			return forecast.Report{}, err
		}
		return forecast.Read(limited, reader, node, f.period)
	})
	if err != nil {
		return sentenceOf(err, config.Host, f.timeout)
	}
	if err := report.Print(streams.Out, f.output); err != nil {
		return err
	}
	return forecastOutcome(report)
}

// nodeOf returns the name of the node that the words name.
func nodeOf(reader *cluster.Reader, words []string) (string, error) {
	refs, err := reference.NewResolver(reader, "", false).Words(words)
	switch {
	case err != nil:
		return "", err
	case len(refs) != 1:
		return "", fmt.Errorf("forecast looks at one node, not at %d objects", len(refs))
	case refs[0].Kind != "Node" || refs[0].Resource.Group != "":
		return "", fmt.Errorf("forecast looks at a node, and %s is of kind %s: name it as node/NAME", refs[0].Name,
			refs[0].Kind)
	}
	return refs[0].Name, nil
}

// forecastOutcome returns the exit code of the report. What was not read may be cut short.
func forecastOutcome(report forecast.Report) error {
	switch {
	case report.CutShort > 0:
		return terminal.ExitError{Code: exitCut, Err: nil}
	case len(report.Incomplete) > 0:
		return errors.New("not everything was read: the lines \"incomplete\" above say what")
	}
	return nil
}
