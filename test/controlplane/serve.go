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
	set.StringVar(&f.readyFile, "ready-file", "", "file that gets the URL once the control plane is ready, and is removed when it stops")
	set.StringVar(&f.auditLog, "audit-log", "", "file that gets one line of JSON per finished request")
	set.StringVar(&f.etcd, "etcd", "", "endpoint of an etcd in another process, see the command etcd (default: etcd runs in this process)")
	set.BoolVar(&f.inMemorySpeed, "in-memory-speed", false, "do not flush to disk: fast, and lost when the machine crashes")
	set.StringVar(&f.featureGates, "feature-gates", "", "feature gates of kube-apiserver, Name=true|false[,...]")
	set.StringArrayVar(&f.users, "user", nil, "write a kubeconfig for a user: NAME[,GROUP...]=FILE (repeatable)")
	set.StringArrayVar(&f.serviceAccounts, "service-account", nil, "write a kubeconfig for a service account: NAMESPACE/NAME=FILE (repeatable)")
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
func addKubeconfigs(files map[string]credentials.Identity, specs []string, parse func(string) (credentials.Identity, error)) error {
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
