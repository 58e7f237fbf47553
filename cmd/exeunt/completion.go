package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/reference"
)

const (
	// completionName is the file name under which kubectl asks a plugin for completions.
	completionName = "kubectl_complete-exeunt"
	// completionTimeout limits how long a shell waits for names.
	completionTimeout = 3 * time.Second
	// maxCompletions limits the names of one completion.
	maxCompletions = 500
)

// arguments returns the arguments of the command. kubectl runs completionName with the words
// to complete.
func arguments(program string, given []string) []string {
	if program == completionName {
		return append([]string{cobra.ShellCompRequestCmd}, given...)
	}
	return given
}

// registerCompletion completes the values of flags; the formats are those of --output.
func registerCompletion(command *cobra.Command, config *genericclioptions.ConfigFlags, formats ...cobra.Completion) {
	for flag, complete := range map[string]cobra.CompletionFunc{
		"output": cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp),
		"context": func(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return contexts(config, typed), cobra.ShellCompDirectiveNoFileComp
		},
		"namespace": func(command *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return names(command.Context(), config, "namespaces", typed), cobra.ShellCompDirectiveNoFileComp
		},
	} {
		_ = command.RegisterFlagCompletionFunc(flag, complete) // fails for unknown flags only
	}
}

// contexts returns the contexts of the kubeconfig.
func contexts(config *genericclioptions.ConfigFlags, typed string) []string {
	raw, err := config.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil
	}
	var found []string
	for name := range raw.Contexts {
		if strings.HasPrefix(name, typed) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

// completeObjects completes KIND, KIND/NAME and, after a KIND, NAME.
func (f *whyFlags) completeObjects(command *cobra.Command, words []string,
	typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if kind, name, hasSlash := strings.Cut(typed, "/"); hasSlash {
		var found []string
		for _, name := range names(command.Context(), f.config, kind, name) {
			found = append(found, kind+"/"+name)
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
	if len(words) > 0 && !strings.Contains(words[0], "/") {
		return names(command.Context(), f.config, words[0], typed), cobra.ShellCompDirectiveNoFileComp
	}
	return kinds(f.config, typed), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// kinds returns the resources that can be listed and whose names begin as typed.
func kinds(config *genericclioptions.ConfigFlags, typed string) []string {
	reader, err := completionReader(config)
	if err != nil {
		return nil
	}
	resources, _ := reader.Resources()
	var found []string
	for _, resource := range resources {
		if name := resource.GroupResource().String(); strings.HasPrefix(name, typed) {
			found = append(found, name)
		}
	}
	return found
}

// names returns the names of a kind's objects that begin as typed.
func names(ctx context.Context, config *genericclioptions.ConfigFlags, kind, typed string) []string {
	reader, err := completionReader(config)
	if err != nil {
		return nil
	}
	namespace, _, err := config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	mapping, err := reference.NewResolver(reader, namespace, false).Mapping(kind)
	if err != nil {
		return nil
	}
	if mapping.Scope.Name() == "root" {
		namespace = ""
	}
	return list(ctx, reader, mapping.Resource, namespace, typed)
}

// list returns the first names that begin as typed.
func list(ctx context.Context, reader *cluster.Reader, resource schema.GroupVersionResource, namespace,
	typed string) []string {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var found []string
	reader.EachMetadata(ctx, resource, namespace, func(page []metav1.PartialObjectMetadata) {
		for _, object := range page {
			if strings.HasPrefix(object.Name, typed) && len(found) < maxCompletions {
				found = append(found, object.Name)
			}
		}
		if len(found) == maxCompletions {
			stop()
		}
	})
	return found
}

func completionReader(config *genericclioptions.ConfigFlags) (*cluster.Reader, error) {
	settings, err := config.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("load kubeconfig: %w", err)
	}
	settings = rest.CopyConfig(settings)
	settings.Timeout = completionTimeout
	return cluster.NewReader(settings)
}

// completeReasons completes the name of a reason.
func completeReasons(_ *cobra.Command, words []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var found []string
	for _, reason := range blocker.Reasons() {
		if name := reason.String(); len(words) == 0 && strings.HasPrefix(strings.ToLower(name), strings.ToLower(typed)) {
			found = append(found, name)
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}
