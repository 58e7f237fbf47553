package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/exeunt-io/exeunt/test/controlplane/internal/datadir"
	"github.com/exeunt-io/exeunt/test/controlplane/internal/server"
)

// newRestoreCommand returns the command that restores etcd as etcdutl does.
func newRestoreCommand() *cobra.Command {
	var dataDir, from string
	var bump uint64
	command := &cobra.Command{
		Use:   "restore --data-dir D --from E [--bump-revision N]",
		Short: "Replace the data of etcd in a stopped control plane by a copy of its directory etcd, as etcdutl snapshot restore does",
		Args:  rejectArguments,
		RunE: func(command *cobra.Command, _ []string) (err error) {
			if dataDir == "" || from == "" {
				return errors.New("--data-dir and --from must not be empty")
			}
			directory, release, err := datadir.Open(dataDir)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, release()) }()
			return server.Restore(command.Context(), directory, from, bump)
		},
		DisableFlagsInUseLine: true,
	}
	set := command.Flags()
	set.StringVar(&dataDir, "data-dir", "", "data directory of the control plane")
	set.StringVar(&from, "from", "", "copy of the directory etcd in it")
	set.Uint64Var(&bump, "bump-revision", 0, "by how much the revision is raised, which also marks all earlier revisions as compacted; 0 keeps it")
	return command
}
