package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/csimock"
)

// flags are the flags of the program.
type flags struct {
	endpoint   string
	capacity   string
	with       []string
	without    []string
	topologies []string
	faults     string
	health     string
	config     csimock.Config
}

// newCommand returns the command, which runs until its context ends.
func newCommand() *cobra.Command {
	var f flags
	command := &cobra.Command{
		Use:           "csimock --endpoint SOCKET",
		Short:         "Serve an in-memory CSI driver on a unix socket",
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(command *cobra.Command, _ []string) error {
			return f.run(command)
		},
	}
	command.SetFlagErrorFunc(func(command *cobra.Command, err error) error {
		return terminal.ExplainFlag(command.Flags(), err, "csimock --help")
	})
	f.register(command)
	return command
}

// register declares the flags.
func (f *flags) register(command *cobra.Command) {
	set := command.Flags()
	set.StringVar(&f.endpoint, "endpoint", "", "socket to serve on: a path, unix:PATH or unix:///PATH (required)")
	set.StringVar(&f.config.Name, "driver-name", csimock.DefaultName, "name that the driver reports")
	set.StringVar(&f.config.StateFile, "state-file", "",
		"file that keeps the volumes across restarts (default: none, volumes are lost)")
	set.IntVar(&f.config.Volumes, "volumes", 0,
		"number of volumes of 1Mi that the driver starts with, named volume-000001 and so on, in addition to those of the state file")
	set.StringVar(&f.capacity, "capacity", "1Ti", "size of the storage pool")
	set.StringSliceVar(&f.with, "with", nil, "capabilities to switch on, of "+
		strings.Join(csimock.CapabilityNames(), ", ")+" (default: all but topology, publish and snapshot-topology are on)")
	set.StringSliceVar(&f.without, "without", nil, "capabilities to switch off; their calls return Unimplemented")
	set.StringArrayVar(&f.topologies, "topology", nil,
		"topology of volumes as KEY=VALUE[,KEY=VALUE]; repeat the flag for more topologies, the first is that of this node (needs --with topology)")
	set.StringVar(&f.config.NodeID, "node-id", csimock.DefaultNodeID, "ID of the node whose Node service this is")
	set.StringSliceVar(&f.config.OtherNodes, "other-nodes", nil, "IDs of further nodes that volumes can be published to")
	set.Int64Var(&f.config.MaxVolumesPerNode, "max-volumes-per-node", 0,
		"maximum number of volumes published to one node (default: no limit)")
	set.StringSliceVar(&f.config.MutableParameters, "mutable-parameters", []string{"iops", "throughput"},
		"mutable parameters of volumes")
	set.StringToStringVar(&f.config.Secrets, "secrets", nil,
		"secrets, as KEY=VALUE, required in every request with a field for secrets (default: none)")
	set.StringVar(&f.config.CallLog, "call-log", "", "file to append one JSON line per finished call to")
	set.StringVar(&f.faults, "faults", "",
		"YAML or JSON file with a list of faults: method, volume, code, times, every, latency, hang, disconnect, after, response")
	set.StringVar(&f.health, "health", "",
		"YAML or JSON file with a list of health conditions: volume (none is the storage backend), status, reason, message")
}

// run serves the driver until the context of the command ends.
func (f *flags) run(command *cobra.Command) error {
	config, err := f.parse()
	if err != nil {
		return err
	}
	server, err := csimock.Start(command.Context(), config, f.endpoint)
	if err != nil {
		return err
	}
	if err := announce(command.OutOrStdout(), server.Name(), f.endpoint); err != nil {
		return errors.Join(err, server.Stop())
	}
	return server.Wait()
}

// announce writes the line that tells that clients can connect.
func announce(out io.Writer, name, endpoint string) error {
	if _, err := fmt.Fprintf(out, "csimock: driver %s serving on %s\n", name, endpoint); err != nil {
		return fmt.Errorf("announce driver: %w", err)
	}
	return nil
}

// parse returns the configuration of the flags.
func (f *flags) parse() (csimock.Config, error) {
	config := f.config
	if f.endpoint == "" {
		return config, errors.New("--endpoint is required, such as --endpoint /run/csimock.sock")
	}
	capacity, err := resource.ParseQuantity(f.capacity)
	if err != nil {
		return config, fmt.Errorf("read --capacity %q: %w", f.capacity, err)
	}
	if config.Capacity = capacity.Value(); config.Capacity <= 0 {
		return config, fmt.Errorf("--capacity %q must be greater than zero", f.capacity)
	}
	if config.Capabilities, err = f.capabilities(); err != nil {
		return config, err
	}
	if config.Topologies, err = parseTopologies(f.topologies); err != nil {
		return config, err
	}
	return config, f.load(&config)
}

// load reads the files of --faults and --health.
func (f *flags) load(config *csimock.Config) error {
	var err error
	if f.faults != "" {
		if config.Faults, err = csimock.LoadFaults(f.faults); err != nil {
			return err
		}
	}
	if f.health != "" {
		config.Health, err = csimock.LoadHealth(f.health)
	}
	return err
}

// capabilities returns the default capabilities with --with on and --without off.
func (f *flags) capabilities() (csimock.Capabilities, error) {
	on, err := csimock.ParseCapabilities(f.with)
	if err != nil {
		return nil, fmt.Errorf("read --with: %w", err)
	}
	off, err := csimock.ParseCapabilities(f.without)
	if err != nil {
		return nil, fmt.Errorf("read --without: %w", err)
	}
	return csimock.DefaultCapabilities().With(on...).Without(off...), nil
}

// parseTopologies reads the values of --topology.
func parseTopologies(values []string) ([]map[string]string, error) {
	topologies := make([]map[string]string, 0, len(values))
	for _, value := range values {
		segments := map[string]string{}
		for pair := range strings.SplitSeq(value, ",") {
			key, segment, found := strings.Cut(pair, "=")
			if !found {
				return nil, fmt.Errorf("--topology %q must be KEY=VALUE[,KEY=VALUE]", value)
			}
			segments[key] = segment
		}
		topologies = append(topologies, segments)
	}
	return topologies, nil
}
