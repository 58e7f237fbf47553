package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/exeunt-io/exeunt/pkg/why"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// whyFlags are the flags of "exeunt why".
type whyFlags struct {
	config *genericclioptions.ConfigFlags
	output string
	probe  bool
}

// newWhyCommand returns "exeunt why".
func newWhyCommand(streams genericiooptions.IOStreams) *cobra.Command {
	flags := whyFlags{config: genericclioptions.NewConfigFlags(true)}
	command := &cobra.Command{
		Use:   "why KIND/NAME",
		Short: "Explain why an object that was deleted is still there",
		RunE: func(command *cobra.Command, words []string) error {
			return flags.run(command, streams, words)
		},
	}
	flags.config.AddFlags(command.Flags())
	command.Flags().StringVarP(&flags.output, "output", "o", "", "json")
	command.Flags().BoolVar(&flags.probe, "probe", false, "find refusals with dry-run writes")
	return command
}

func (f *whyFlags) run(command *cobra.Command, streams genericiooptions.IOStreams, words []string) error {
	config, err := f.config.ToRESTConfig()
	if err != nil {
		return fmt.Errorf("load kubeconfig: %w", err)
	}
	reader, err := cluster.NewReader(config)
	if err != nil {
		return err
	}
	ref, err := f.parse(words)
	if err != nil {
		return err
	}
	explorer := why.NewExplorer(reader, cluster.Commands{Context: *f.config.Context}, f.probe)
	report, err := explorer.Explain(command.Context(), ref)
	if err != nil {
		return err
	}
	return json.NewEncoder(streams.Out).Encode(report)
}

// parse returns the object that the words KIND/NAME or KIND NAME name.
func (f *whyFlags) parse(words []string) (cluster.Ref, error) {
	kind, name, found := strings.Cut(strings.Join(words, "/"), "/")
	if !found {
		return cluster.Ref{}, errors.New("want KIND/NAME")
	}
	mapper, err := f.config.ToRESTMapper()
	if err != nil {
		return cluster.Ref{}, fmt.Errorf("discover kinds: %w", err)
	}
	resource, err := mapper.ResourceFor(schema.ParseGroupResource(kind).WithVersion(""))
	if err != nil {
		return cluster.Ref{}, fmt.Errorf("find kind %s: %w", kind, err)
	}
	gvk, err := mapper.KindFor(resource)
	if err != nil {
		return cluster.Ref{}, fmt.Errorf("find kind %s: %w", kind, err)
	}
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return cluster.Ref{}, fmt.Errorf("find kind %s: %w", kind, err)
	}
	ref := cluster.Ref{Resource: resource, Kind: gvk.Kind, Name: name}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		if ref.Namespace, _, err = f.config.ToRawKubeConfigLoader().Namespace(); err != nil {
			return cluster.Ref{}, fmt.Errorf("load kubeconfig: %w", err)
		}
	}
	return ref, nil
}
