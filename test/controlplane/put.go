package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/exeunt-io/exeunt/test/controlplane/internal/server"
)

// newPutCommand returns the command that fills a large cluster, as hundreds of thousands of
// objects take an hour through the API server.
func newPutCommand() *cobra.Command {
	var endpoint string
	command := &cobra.Command{
		Use:   "put --etcd ENDPOINT",
		Short: `Store objects in an etcd past its API server: {"key": "/registry/...", "value": "BASE64"} for each on standard input`,
		Args:  rejectArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if endpoint == "" {
				return errors.New("--etcd is missing: it is the endpoint that controlplane etcd prints")
			}
			return server.Put(command.Context(), endpoint, command.InOrStdin())
		},
		DisableFlagsInUseLine: true,
	}
	command.Flags().StringVar(&endpoint, "etcd", "", "endpoint of an etcd in another process, see the command etcd")
	return command
}
