package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/component-base/version/verflag"

	"github.com/exeunt-io/exeunt/test/controlplane/internal/credentials"
	"github.com/exeunt-io/exeunt/test/controlplane/internal/datadir"
	"github.com/exeunt-io/exeunt/test/controlplane/internal/server"
)

// serveFlags are the flags of the command that serves.
type serveFlags struct {
	dataDir         string
	kubeconfigOut   string
	readyFile       string
	auditLog        string
	etcd            string
	kubeAPIServer   string
	inMemorySpeed   bool
	featureGates    string
	users           []string
	serviceAccounts []string
	extraArgs       []string
}

// newCommand returns the command that serves, with subcommands that write kubeconfig files,
// run etcd alone, store objects in it and restore it.
func newCommand() *cobra.Command {
	var flags serveFlags
	command := &cobra.Command{
		Use:           "controlplane",
		Short:         "Run etcd and kube-apiserver on loopback ports until SIGTERM",
		Args:          rejectArguments,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRun: func(*cobra.Command, []string) {
			verflag.PrintAndExitIfRequested()
		},
		RunE: func(command *cobra.Command, _ []string) error {
			return serve(command, flags)
		},
	}
	command.SuggestionsMinimumDistance = 2
	command.CompletionOptions.DisableDefaultCmd = true
	command.SetFlagErrorFunc(func(command *cobra.Command, err error) error {
		return fmt.Errorf("%w, see %s --help", err, command.CommandPath())
	})
	flags.register(command.Flags())
	command.AddCommand(newKubeconfigCommand(), newEtcdCommand(), newPutCommand(), newRestoreCommand())
	return command
}

// register defines the flags in set.
func (f *serveFlags) register(set *pflag.FlagSet) {
	set.StringVar(&f.dataDir, "data-dir", "", "directory that keeps all data (default: a temporary one)")
	set.StringVar(&f.kubeconfigOut, "kubeconfig-out", "", "file that gets the administrator's kubeconfig")
	set.StringVar(&f.readyFile, "ready-file", "",
		"file that gets the URL once the control plane is ready, and is removed when it stops")
	set.StringVar(&f.auditLog, "audit-log", "", "file that gets one line of JSON per finished request")
	set.StringVar(&f.etcd, "etcd", "",
		"endpoint of an etcd in another process, see the command etcd (default: etcd runs in this process)")
	set.StringVar(&f.kubeAPIServer, "kube-apiserver", "",
		"program that runs instead of the built-in kube-apiserver, with its log in the data directory")
	set.BoolVar(&f.inMemorySpeed, "in-memory-speed", false,
		"do not flush to disk: fast, and lost when the machine crashes")
	set.StringVar(&f.featureGates, "feature-gates", "", "feature gates of kube-apiserver, Name=true|false[,...]")
	set.StringArrayVar(&f.users, "user", nil, "write a kubeconfig for a user: NAME[,GROUP...]=FILE (repeatable)")
	set.StringArrayVar(&f.serviceAccounts, "service-account", nil,
		"write a kubeconfig for a service account: NAMESPACE/NAME=FILE (repeatable)")
	set.StringArrayVar(&f.extraArgs, "extra-arg", nil, "further flag of kube-apiserver: KEY=VALUE (repeatable)")
}

// rejectArguments rejects unknown subcommands, and suggests a similar one.
func rejectArguments(command *cobra.Command, words []string) error {
	if len(words) == 0 {
		return nil
	}
	hint := "see " + command.CommandPath() + " --help"
	if meant := command.SuggestionsFor(words[0]); len(meant) > 0 {
		hint = "did you mean " + meant[0] + "?"
	}
	return fmt.Errorf("unknown command %q, %s", words[0], hint)
}

// serve runs the control plane until the command's context ends.
func serve(command *cobra.Command, flags serveFlags) (err error) {
	kubeconfigs, err := flags.kubeconfigs()
	if err != nil {
		return err
	}
	directory, release, err := datadir.Open(flags.dataDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	if err := flags.removeReadyFile(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, flags.removeReadyFile()) }()
	return server.Run(command.Context(), server.Config{
		Dir:         directory,
		SkipFsync:   flags.inMemorySpeed,
		AuditLog:    flags.auditLog,
		Etcd:        flags.etcd,
		Program:     flags.kubeAPIServer,
		ExtraArgs:   flags.apiServerArgs(),
		Kubeconfigs: kubeconfigs,
		Ready: func(url string) error {
			if err := flags.writeReadyFile(url); err != nil {
				return err
			}
			_, err := fmt.Fprintln(command.OutOrStdout(), "controlplane: ready", url)
			return err
		},
	})
}

// kubeconfigs returns the identity for each kubeconfig file.
func (f serveFlags) kubeconfigs() (map[string]credentials.Identity, error) {
	files := map[string]credentials.Identity{}
	if f.kubeconfigOut != "" {
		files[f.kubeconfigOut] = credentials.Admin
	}
	err := errors.Join(
		addKubeconfigs(files, f.users, credentials.ParseUser),
		addKubeconfigs(files, f.serviceAccounts, credentials.ParseServiceAccount))
	return files, err
}

// addKubeconfigs adds the specs WHO=FILE to files.
func addKubeconfigs(files map[string]credentials.Identity, specs []string,
	parse func(string) (credentials.Identity, error)) error {
	for _, spec := range specs {
		who, file, _ := strings.Cut(spec, "=")
		if file == "" {
			return fmt.Errorf("parse %q: the file is missing, want WHO=FILE", spec)
		}
		identity, err := parse(who)
		if err != nil {
			return err
		}
		files[file] = identity
	}
	return nil
}

// apiServerArgs returns the flags that are passed to kube-apiserver unchanged.
func (f serveFlags) apiServerArgs() []string {
	if f.featureGates == "" {
		return f.extraArgs
	}
	return append([]string{"feature-gates=" + f.featureGates}, f.extraArgs...)
}

// writeReadyFile writes the ready file, if there is one.
func (f serveFlags) writeReadyFile(url string) error {
	if f.readyFile == "" {
		return nil
	}
	return credentials.WriteFile(f.readyFile, []byte(url+"\n"))
}

// removeReadyFile removes the ready file.
func (f serveFlags) removeReadyFile() error {
	if f.readyFile == "" {
		return nil
	}
	if err := os.Remove(f.readyFile); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove ready file: %w", err)
	}
	return nil
}

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
	set.Uint64Var(&bump, "bump-revision", 0,
		"by how much the revision is raised, which also marks all earlier revisions as compacted; 0 keeps it")
	return command
}

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
	set.StringVar(&dataDir, "data-dir", "",
		"directory that keeps all data, not that of the control plane (default: a temporary one)")
	set.BoolVar(&inMemorySpeed, "in-memory-speed", false, "do not flush to disk: fast, and lost when the machine crashes")
	return command
}

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
