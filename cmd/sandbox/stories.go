package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/exeunt-io/exeunt/test/demo"
	"github.com/exeunt-io/exeunt/test/sandbox"
	"github.com/exeunt-io/exeunt/test/stories"
)

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
	set.StringVar(&f.against, "against", "", "`upstream` plays stories with our programs and with upstream's, which make build-upstream builds")
	set.StringSliceVar(&f.names, "story", nil, "stories to play with --against: killed, policy-race, pv-first, pvc-first, namespace (default: all)")
	set.IntVar(&f.volumes, "volumes", 500, "number of volumes in the stories pv-first and pvc-first")
}

// check refuses flags that do not go together.
func (f *storyFlags) check(set *pflag.FlagSet) error {
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
