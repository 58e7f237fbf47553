package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/test/demo"
	"github.com/exeunt-io/exeunt/test/sandbox"
	"github.com/exeunt-io/exeunt/test/stories"
)

// demoFlags are the flags of "sandbox demo".
type demoFlags struct {
	binDir  string
	gate    string
	output  string
	timeout time.Duration
	keep    bool
	slow    bool
	stories storyFlags
}

// newDemoCommand returns "sandbox demo".
func newDemoCommand(streams genericiooptions.IOStreams) *cobra.Command {
	var flags demoFlags
	command := &cobra.Command{
		Use:   "demo",
		Short: "Show a volume that is deleted before its claim, with the gate on and off",
		Long: "demo starts a real API server, a mock storage system and both controllers, deletes a\n" +
			"PersistentVolume before its claim, and shows which program does what: first with the gate\n" +
			"HonorPVReclaimPolicy on, then with the gate off, where the volume stays in the storage system.\n" +
			"The exit status is 0 only if the first run leaves no volume and the second run exactly one.\n\n" +
			"With --against=upstream it runs stories instead, each with our programs and with\n" +
			"kube-controller-manager and csi-provisioner, and compares what is left in the storage system.\n" +
			"The exit status is 0 only if our programs leave nothing; upstream's results are only reported.\n" +
			"In the story policy-race our programs have the admission policy, which needs Kubernetes 1.36.\n" +
			"--story=grace compares kube-apiserver of Exeunt with upstream's, and needs \"make apiserver\".\n" +
			"--story=node ends simulated nodes by kubectl drain and delete, and by node-terminator.\n" +
			"--story=teardown ends clusters in several ways, and counts what each leaves in the cloud. This story\n" +
			"needs no --against: its clusters have upstream's programs.\n\n" +
			"Colors are on terminals only: NO_COLOR=1 turns them off, CLICOLOR_FORCE=1 turns them on everywhere.",
		Args: terminal.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			return flags.run(command, streams)
		},
	}
	set := command.Flags()
	set.StringVar(&flags.binDir, "bin-dir", "",
		"directory of the programs to start (default: the directory of this program)")
	set.StringVar(&flags.gate, "gate", "both", "which runs to show: both, on or off")
	set.StringVarP(&flags.output, "output", "o", "",
		"json prints one object per line and the verdicts last; empty prints a timeline")
	set.DurationVar(&flags.timeout, "timeout", 2*time.Minute,
		"time limit for the whole demo; 10m with --slow, 30m with --against")
	set.BoolVar(&flags.keep, "keep", false, "keep data and logs, and print their directory")
	set.BoolVar(&flags.slow, "slow", false, "pause before each line, to read along; the programs do not wait")
	flags.stories.register(set)
	return command
}

// run checks the flags, and shows the demo or runs stories.
func (f demoFlags) run(command *cobra.Command, streams genericiooptions.IOStreams) error {
	set := command.Flags()
	if err := f.stories.check(set); err != nil {
		return err
	}
	switch chosen := set.Changed("timeout"); {
	case f.stories.against != "" && !chosen:
		f.timeout = storiesTimeout
	case f.slow && !chosen:
		f.timeout = slowTimeout
	}
	config, err := f.config(command.Context(), streams)
	if err != nil {
		return err
	}
	if f.stories.against == "" {
		return demo.Run(command.Context(), config)
	}
	storyConfig, err := f.storyConfig(streams)
	if err != nil {
		return err
	}
	return stories.Run(command.Context(), storyConfig)
}

// slowTimeout is the default time limit with --slow.
const slowTimeout = 10 * time.Minute

// config checks the flags and returns the configuration of the demo.
func (f demoFlags) config(ctx context.Context, streams genericiooptions.IOStreams) (demo.Config, error) {
	config := demo.Config{
		Binaries: sandbox.Binaries{Dir: f.binDir},
		Timeout:  f.timeout,
		Keep:     f.keep,
		Progress: demo.Progress{Out: streams.ErrOut},
	}
	switch f.gate {
	case "both":
		config.Gates = []bool{true, false}
	case "on":
		config.Gates = []bool{true}
	case "off":
		config.Gates = []bool{false}
	default:
		return config, fmt.Errorf("--gate must be both, on or off, not %q", f.gate)
	}
	switch {
	case f.output == "" && f.slow:
		config.Printer = demo.NewSlowTextPrinter(ctx, streams.Out, terminal.SupportsColor(streams.Out))
	case f.output == "":
		config.Printer = demo.NewTextPrinter(streams.Out, terminal.SupportsColor(streams.Out))
	case f.output == "json" && f.slow:
		return config, errors.New("--slow is for people, --output=json is not: leave one out")
	case f.output == "json":
		config.Printer = demo.NewJSONPrinter(streams.Out)
	default:
		return config, fmt.Errorf("--output must be json or be left out, not %q", f.output)
	}
	if f.timeout <= 0 {
		return config, errors.New("--timeout must be longer than 0")
	}
	return config, nil
}

// storiesTimeout is the default time limit with --against.
const storiesTimeout = 30 * time.Minute

// storyFlags are the flags of "sandbox demo" about stories.
type storyFlags struct {
	against string
	names   []string
	volumes int
}

// register declares the flags.
func (f *storyFlags) register(set *pflag.FlagSet) {
	set.StringVar(&f.against, "against", "",
		"`upstream` runs stories with our programs and with upstream's, which make build-upstream builds")
	set.StringSliceVar(&f.names, "story", nil,
		"stories to run with --against: killed, policy-race, pv-first, pvc-first, namespace (default: these), grace, node, "+
			"teardown; the last alone needs no --against")
	set.IntVar(&f.volumes, "volumes", 500, "number of volumes in the stories pv-first and pvc-first")
}

// check refuses flags that do not go together.
func (f *storyFlags) check(set *pflag.FlagSet) error {
	if f.against == "" && slices.Equal(f.names, []string{"teardown"}) {
		f.against = string(demo.Upstream) // whose programs all its clusters have
	}
	if f.against == "" {
		for _, name := range []string{"story", "volumes"} {
			if set.Changed(name) {
				return fmt.Errorf("--%s needs --against=upstream", name)
			}
		}
		return nil
	}
	for _, name := range []string{"gate", "slow"} {
		if set.Changed(name) {
			return fmt.Errorf("--%s does not go with --against", name)
		}
	}
	switch {
	case f.against != string(demo.Upstream):
		return fmt.Errorf("--against must be upstream, not %q", f.against)
	case f.volumes < 1:
		return errors.New("--volumes must be at least 1")
	}
	return nil
}

// storyConfig returns the configuration of the stories.
func (f *demoFlags) storyConfig(streams genericiooptions.IOStreams) (stories.Config, error) {
	config := stories.Config{
		Binaries: sandbox.Binaries{Dir: f.binDir},
		Pairs:    []demo.Pair{demo.Ours, demo.Upstream},
		Volumes:  f.stories.volumes,
		Timeout:  f.timeout,
		Keep:     f.keep,
		Printer:  stories.NewTextPrinter(streams.Out),
		Progress: demo.Progress{Out: streams.ErrOut},
	}
	if f.output == "json" {
		config.Printer = stories.NewJSONPrinter(streams.Out)
	}
	var err error
	config.Stories, err = stories.Select(f.stories.names)
	return config, err
}
