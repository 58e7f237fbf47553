package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// ofConnection annotates the flags of the connection, which help lists after the command's own.
const ofConnection = "exeunt.io/connection"

// ownConnection are flags of the connection that select what a command shows.
var ownConnection = []string{"namespace"}

// addConnection adds the flags of the connection.
func addConnection(set *pflag.FlagSet, config *genericclioptions.ConfigFlags) {
	all := pflag.NewFlagSet("connection", pflag.ContinueOnError)
	config.AddFlags(all)
	all.VisitAll(func(flag *pflag.Flag) {
		if !slices.Contains(ownConnection, flag.Name) {
			markConnection(flag)
		}
	})
	set.AddFlagSet(all)
}

func markConnection(flag *pflag.Flag) {
	if flag.Annotations == nil {
		flag.Annotations = map[string][]string{}
	}
	flag.Annotations[ofConnection] = nil
}

// flagUsages returns the help of the command's flags: of the connection, or the others.
func flagUsages(command *cobra.Command, connection bool) string {
	chosen := pflag.NewFlagSet("help", pflag.ContinueOnError)
	for _, set := range []*pflag.FlagSet{command.LocalFlags(), command.InheritedFlags()} {
		set.VisitAll(func(flag *pflag.Flag) {
			if _, marked := flag.Annotations[ofConnection]; marked == connection && chosen.Lookup(flag.Name) == nil {
				chosen.AddFlag(flag)
			}
		})
	}
	return strings.TrimRight(chosen.FlagUsages(), " \n")
}

// usageTemplate is cobra's, with the flags of the connection in a section of their own at the end.
const usageTemplate = `Usage:{{if .Runnable}}
  {{.UseLine}}{{end}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} [command]{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}

Available Commands:{{range .Commands}}{{if (or .IsAvailableCommand (eq .Name "help"))}}
  {{rpad .Name .NamePadding }} {{.Short}}{{end}}{{end}}{{end}}{{with ownFlags .}}

Flags:
{{.}}{{end}}{{with connectionFlags .}}

Flags of the connection:
{{.}}{{end}}{{if .HasAvailableSubCommands}}

Use "{{.CommandPath}} [command] --help" for more information about a command.{{end}}
`

// setUsage sets the usage of the command and of all its subcommands.
func setUsage(command *cobra.Command) {
	cobra.AddTemplateFunc("ownFlags", func(c *cobra.Command) string { return flagUsages(c, false) })
	cobra.AddTemplateFunc("connectionFlags", func(c *cobra.Command) string { return flagUsages(c, true) })
	command.SetUsageTemplate(usageTemplate)
}

// errNoServer is the error of a kubeconfig that names no server: client-go would try localhost:8080.
var errNoServer = errors.New("no API server is known")

// restConfigOf returns how to reach the cluster of the flags.
func restConfigOf(config *genericclioptions.ConfigFlags) (*rest.Config, error) {
	loaded, err := config.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("load kubeconfig: %w", err)
	}
	const fallback = "http://localhost:8080"
	if loaded.Host != fallback || config.APIServer != nil && *config.APIServer != "" {
		return loaded, nil
	}
	loader := config.ToRawKubeConfigLoader()
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, fmt.Errorf("load kubeconfig: %w", err)
	}
	if serverOf(raw, config) == fallback {
		return loaded, nil
	}
	var missing, read []string
	for _, file := range loader.ConfigAccess().GetLoadingPrecedence() {
		if _, err := os.Stat(file); err != nil {
			missing = append(missing, file)
		} else {
			read = append(read, file)
		}
	}
	if len(read) == 0 {
		return nil, fmt.Errorf("%w: the kubeconfig %s does not exist; set KUBECONFIG, --kubeconfig or --server", errNoServer,
			strings.Join(missing, ", "))
	}
	return nil, fmt.Errorf("%w: the kubeconfig %s names none for its current context; set --context or --server",
		errNoServer, strings.Join(read, ", "))
}

// serverOf returns the server of the context that the flags choose, "" for none.
func serverOf(raw clientcmdapi.Config, config *genericclioptions.ConfigFlags) string {
	name := raw.CurrentContext
	if config.Context != nil && *config.Context != "" {
		name = *config.Context
	}
	cluster := ""
	if chosen := raw.Contexts[name]; chosen != nil {
		cluster = chosen.Cluster
	}
	if config.ClusterName != nil && *config.ClusterName != "" {
		cluster = *config.ClusterName
	}
	if found := raw.Clusters[cluster]; found != nil {
		return found.Server
	}
	return ""
}
