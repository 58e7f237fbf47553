package compose

import (
	"context"
	"net/http"

	extensionsapiserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/admission"
	genericapiserver "k8s.io/apiserver/pkg/server"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	utilversion "k8s.io/component-base/version"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"

	"github.com/exeunt-io/exeunt/cmd/kube-apiserver/internal/gracestorage"
)

// CustomResourceGracefulDeletion is the gate: custom resources with finalizers get the grace period that a DELETE names.
const CustomResourceGracefulDeletion featuregate.Feature = "CustomResourceGracefulDeletion"

// addGate adds the gate to those of kube-apiserver. It runs before the flags are defined, whose help lists the gates.
func addGate() {
	utilruntime.Must(utilfeature.DefaultMutableFeatureGate.Add(map[featuregate.Feature]featuregate.FeatureSpec{
		CustomResourceGracefulDeletion: {Default: true, PreRelease: featuregate.Beta},
	}))
}

// Run runs kube-apiserver until ctx ends.
func Run(ctx context.Context, completed options.CompletedOptions) error {
	klog.InfoS("Starting kube-apiserver with graceful deletion of custom resources", "version", utilversion.Get(),
		"enabled", utilfeature.DefaultFeatureGate.Enabled(CustomResourceGracefulDeletion))
	config, err := app.NewConfig(completed)
	if err != nil {
		return err
	}
	if utilfeature.DefaultFeatureGate.Enabled(CustomResourceGracefulDeletion) {
		AddGracefulDeletion(config.ApiExtensions, &config.Aggregator.GenericConfig.Config)
	}
	complete, err := config.Complete()
	if err != nil {
		return err
	}
	server, err := app.CreateServerChain(complete)
	if err != nil {
		return err
	}
	prepared, err := server.PrepareRun()
	if err != nil {
		return err
	}
	return prepared.Run(ctx)
}

// AddGracefulDeletion puts the storage of package gracestorage around that of custom resources. Outer is the server
// that clients reach.
func AddGracefulDeletion(extensions *extensionsapiserver.Config, outer *genericapiserver.Config) {
	gracestorage.RegisterMetrics()
	extra := &extensions.ExtraConfig
	extra.CRDRESTOptionsGetter = gracestorage.RESTOptionsGetter{RESTOptionsGetter: extra.CRDRESTOptionsGetter}
	extensions.GenericConfig.AdmissionControl = withAdmission(extensions.GenericConfig.AdmissionControl)
	chain := outer.BuildHandlerChainFunc
	outer.BuildHandlerChainFunc = func(handler http.Handler, c *genericapiserver.Config) http.Handler {
		return chain(gracestorage.Handler(handler), c)
	}
}

// withAdmission adds our plugin as the last one.
func withAdmission(plugins admission.Interface) admission.Interface {
	if plugins == nil {
		return admission.NewChainHandler(gracestorage.Admission{})
	}
	return admission.NewChainHandler(plugins, gracestorage.Admission{})
}
