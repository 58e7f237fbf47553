package server

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/rest"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// parse returns the options of kube-apiserver for the flags.
func parse(flags []string) (*options.ServerRunOptions, error) {
	server := options.NewServerRunOptions()
	set := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	set.Usage = func() {}
	for _, section := range server.Flags().FlagSets {
		set.AddFlagSet(section)
	}
	if err := set.Parse(flags); err != nil {
		return nil, fmt.Errorf("parse flags of kube-apiserver: %w", err)
	}
	if err := server.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return nil, fmt.Errorf("set feature gates: %w", err)
	}
	if err := logsapi.ValidateAndApply(server.Logs, utilfeature.DefaultFeatureGate); err != nil {
		return nil, fmt.Errorf("set up logging: %w", err)
	}
	return server, nil
}

// serveAPI runs kube-apiserver until ctx ends and it has stopped.
func serveAPI(ctx context.Context, server *options.ServerRunOptions) error {
	// The server's own clients log every use of a deprecated API.
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	completed, err := server.Complete(ctx)
	if err != nil {
		return fmt.Errorf("complete options of kube-apiserver: %w", err)
	}
	if errs := completed.Validate(); len(errs) != 0 {
		return fmt.Errorf("check options of kube-apiserver: %w", utilerrors.NewAggregate(errs))
	}
	if err := app.Run(ctx, completed); err != nil {
		return fmt.Errorf("run kube-apiserver: %w", err)
	}
	return nil
}
