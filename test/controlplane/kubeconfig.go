package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/exeunt-io/exeunt/test/controlplane/internal/credentials"
	"github.com/exeunt-io/exeunt/test/controlplane/internal/datadir"
)

// kubeconfigFlags are the flags of the command that writes a kubeconfig.
type kubeconfigFlags struct {
	dataDir        string
	out            string
	user           string
	groups         []string
	serviceAccount string
}

// newKubeconfigCommand returns the command that writes a kubeconfig for any
// user or service account.
func newKubeconfigCommand() *cobra.Command {
	var flags kubeconfigFlags
	command := &cobra.Command{
		Use:   "kubeconfig --data-dir D (--user NAME [--group G]... | --service-account NAMESPACE/NAME) --out F",
		Short: "Write a kubeconfig for a user or a service account of a running or stopped control plane",
		Args:  rejectArguments,
		RunE: func(*cobra.Command, []string) error {
			return writeKubeconfig(flags)
		},
		DisableFlagsInUseLine: true,
	}
	set := command.Flags()
	set.StringVar(&flags.dataDir, "data-dir", "", "data directory of the control plane")
	set.StringVar(&flags.out, "out", "", "file to write, readable by its owner only")
	set.StringVar(&flags.user, "user", "", "name of the user")
	set.StringArrayVar(&flags.groups, "group", nil, "group of the user (repeatable)")
	set.StringVar(&flags.serviceAccount, "service-account", "", "service account, as NAMESPACE/NAME")
	command.MarkFlagsOneRequired("data-dir")
	command.MarkFlagsOneRequired("out")
	command.MarkFlagsOneRequired("user", "service-account")
	command.MarkFlagsMutuallyExclusive("user", "service-account")
	command.MarkFlagsMutuallyExclusive("group", "service-account")
	return command
}

// writeKubeconfig signs a certificate with the authority in the data directory.
func writeKubeconfig(flags kubeconfigFlags) error {
	identity, err := flags.identity()
	if err != nil {
		return err
	}
	directory := datadir.Dir(flags.dataDir)
	url, err := directory.URL()
	if err != nil {
		return err
	}
	authority, err := credentials.OpenAuthority(directory.PKI(), datadir.ClusterCA)
	if err != nil {
		return err
	}
	return authority.WriteKubeconfig(flags.out, url, identity)
}

// identity returns the user of the kubeconfig.
func (f kubeconfigFlags) identity() (credentials.Identity, error) {
	if f.serviceAccount != "" {
		return credentials.ParseServiceAccount(f.serviceAccount)
	}
	return credentials.ParseUser(strings.Join(append([]string{f.user}, f.groups...), ","))
}
