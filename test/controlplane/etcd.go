package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/exeunt-io/exeunt/test/controlplane/internal/datadir"
	"github.com/exeunt-io/exeunt/test/controlplane/internal/server"
)

// newEtcdCommand returns the command that runs etcd alone, so that its CPU time and memory can
// be told from those of the API server.
func newEtcdCommand() *cobra.Command {
	var dataDir string
	var inMemorySpeed bool
	command := &cobra.Command{
		Use:   "etcd [--data-dir D] [--in-memory-speed]",
		Short: "Run etcd alone until SIGTERM, for the flag --etcd of a control plane in another process",
		Args:  rejectArguments,
		RunE: func(command *cobra.Command, _ []string) (err error) {
			directory, release, err := datadir.Open(dataDir)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, release()) }()
			return server.RunEtcd(command.Context(), directory, inMemorySpeed, func(endpoint string) error {
				_, err := fmt.Fprintln(command.OutOrStdout(), "controlplane: etcd", endpoint)
				return err
			})
		},
		DisableFlagsInUseLine: true,
	}
	set := command.Flags()
	set.StringVar(&dataDir, "data-dir", "", "directory that keeps all data, not that of the control plane (default: a temporary one)")
	set.BoolVar(&inMemorySpeed, "in-memory-speed", false, "do not flush to disk: fast, and lost when the machine crashes")
	return command
}
