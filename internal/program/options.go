package program

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/exeunt-io/exeunt/pkg/features"
)

// Options are the flags that both programs have.
type Options struct {
	// Kubeconfig is a file; empty means the service account of the pod.
	Kubeconfig string
	// Master is the address of the API server, which overrides the kubeconfig's.
	Master string
	// QPS and Burst limit the requests per second of each client; 0 leaves the limit to the
	// fairness of the API server.
	QPS   float32
	Burst int
	// Upstream are the limits of the replaced program. They are the default of QPS or Burst
	// if only the other one is set.
	Upstream Limits
	// ContentType is how requests are encoded.
	ContentType string
	// NoGates: the program has no feature gates.
	NoGates bool
	// Logging configures format and verbosity of the log.
	Logging *logsapi.LoggingConfiguration

	gates map[string]bool
	gate  featuregate.MutableFeatureGate
}

// Limits are the rate limits of a client.
type Limits struct {
	QPS   float32
	Burst int
}

// NewOptions returns the defaults. The gates are those of the program beside the common
// ones.
func NewOptions(gates map[featuregate.Feature]featuregate.FeatureSpec) (*Options, error) {
	gate, err := features.NewGate()
	if err != nil {
		return nil, err
	}
	if err := gate.Add(gates); err != nil {
		return nil, fmt.Errorf("add feature gates: %w", err)
	}
	return &Options{ContentType: runtime.ContentTypeProtobuf, Logging: logsapi.NewLoggingConfiguration(),
		gates: map[string]bool{}, gate: gate}, nil
}

// AddFlags registers the flags.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig,
		"kubeconfig file; without it, the service account of the pod is used")
	flags.StringVar(&o.Master, "master", o.Master, "address of the API server; overrides the one in the kubeconfig")
	flags.Float32Var(&o.QPS, "kube-api-qps", o.QPS,
		"maximum requests per second to the API server, for each part of the program; 0 or less leaves the limit to the fairness of the server")
	flags.IntVar(&o.Burst, "kube-api-burst", o.Burst,
		fmt.Sprintf("maximum burst of requests to the API server; if only one of --kube-api-qps and --kube-api-burst is set, the other is %v or %d", o.Upstream.QPS, o.Upstream.Burst))
	if !o.NoGates {
		flags.Var(cliflag.NewMapStringBool(&o.gates), "feature-gates",
			"comma-separated list of gate=true|false; gates:\n"+strings.Join(features.Known(o.gate), "\n"))
	}
	logsapi.AddFlags(o.Logging, flags)
}

// Complete checks the flags and applies gates and logging.
func (o *Options) Complete() error {
	switch {
	case o.Burst < 0:
		return errors.New("--kube-api-burst must not be negative")
	case o.ContentType != runtime.ContentTypeProtobuf && o.ContentType != runtime.ContentTypeJSON:
		return fmt.Errorf("--kube-api-content-type must be %s or %s", runtime.ContentTypeProtobuf, runtime.ContentTypeJSON)
	}
	o.completeLimits()
	if err := logsapi.ValidateAndApply(o.Logging, nil); err != nil { // first: setting a gate can log
		return fmt.Errorf("set up logging by --logging-format, --v, --vmodule or --log-...: %w", err)
	}
	return features.Set(o.gate, o.gates)
}

// completeLimits sets the missing one of QPS and Burst.
func (o *Options) completeLimits() {
	switch {
	case o.QPS < 0:
		o.QPS, o.Burst = 0, 0
	case o.QPS == 0 && o.Burst > 0:
		o.QPS = o.Upstream.QPS
	case o.QPS > 0 && o.Burst == 0:
		o.Burst = o.Upstream.Burst
	}
}

// Honor returns whether the gate HonorPVReclaimPolicy is enabled.
func (o *Options) Honor() bool {
	return o.gate.Enabled(features.HonorPVReclaimPolicy)
}

// Gates returns whether each feature gate is enabled.
func (o *Options) Gates() map[string]bool {
	gates := map[string]bool{}
	for name := range o.gate.GetAll() {
		gates[string(name)] = o.gate.Enabled(name)
	}
	return gates
}

func (o *Options) restConfig() (*rest.Config, error) {
	if o.Kubeconfig == "" && o.Master == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("find the API server: give --kubeconfig outside of a cluster: %w", err)
		}
		return config, nil
	}
	config, err := clientcmd.BuildConfigFromFlags(o.Master, o.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("load kubeconfig %q given by --kubeconfig: %w", o.Kubeconfig, err)
	}
	return config, nil
}
