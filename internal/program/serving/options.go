package serving

import (
	"fmt"
	"math"
	"net/http"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/server/options"
	cliflag "k8s.io/component-base/cli/flag"
)

// portFlag enables serving.
const portFlag = "secure-port"

// Options are the flags of the secure port. Nothing is served unless a port is given.
type Options struct {
	program        string
	secure         *options.SecureServingOptions
	authentication *options.DelegatingAuthenticationOptions
	authorization  *options.DelegatingAuthorizationOptions
	profiling      profiling
	// own are the flags of these options, all those of the program.
	own, all *pflag.FlagSet
	// handlers are further handlers of the program, by path.
	handlers map[string]http.Handler
}

// Handle serves the path with authentication and authorization. It is called before Serve.
func (o *Options) Handle(path string, handler http.Handler) {
	if o.handlers == nil {
		o.handlers = map[string]http.Handler{}
	}
	o.handlers[path] = handler
}

// NewOptions returns the defaults for the program of that name.
func NewOptions(program string) *Options {
	o := &Options{
		program:        program,
		secure:         options.NewSecureServingOptions(),
		authentication: options.NewDelegatingAuthenticationOptions(),
		authorization:  options.NewDelegatingAuthorizationOptions(),
		profiling:      profiling{Enabled: true},
		own:            pflag.NewFlagSet("serving", pflag.ContinueOnError),
	}
	o.secure.BindPort = 0
	o.secure.ServerCert.CertDirectory, o.secure.ServerCert.PairName = "", program
	o.secure.AddFlags(o.own)
	o.authentication.AddFlags(o.own)
	o.authorization.AddFlags(o.own)
	o.profiling.addFlags(o.own)
	for name, usage := range usages {
		o.own.Lookup(name).Usage = usage
	}
	return o
}

// usages are the help texts of flags whose defaults are not those of an API server.
var usages = map[string]string{
	portFlag: "port that serves /healthz, /livez, /readyz, /metrics, /configz, /flagz and profiles with authentication and authorization; " +
		"the default 0 serves nothing, so that several programs on one host never clash; 10270 is a good choice, beside 10257 of kube-controller-manager",
	"cert-dir": "directory of the TLS certificate; a self-signed certificate is written there if there is none; " +
		"ignored with --tls-cert-file and --tls-private-key-file; without any of the three, a self-signed certificate is kept in memory",
	"authentication-kubeconfig": "kubeconfig of the API server that reviews tokens, with the right to create tokenreviews; " +
		"without it, --kubeconfig or the service account of the pod is used",
	"authorization-kubeconfig": "kubeconfig of the API server that reviews access, with the right to create subjectaccessreviews; " +
		"without it, --kubeconfig or the service account of the pod is used",
}

// AddFlags registers the flags.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.AddFlagSet(o.own)
	o.all = flags
}

// Complete validates the flags. The kubeconfig is the default of --authentication-kubeconfig
// and --authorization-kubeconfig.
func (o *Options) Complete(kubeconfig string) error {
	if err := o.requirePort(); err != nil {
		return err
	}
	for _, file := range []*string{&o.authentication.RemoteKubeConfigFile, &o.authorization.RemoteKubeConfigFile} {
		if *file == "" {
			*file = kubeconfig
		}
	}
	if o.secure.BindPort < 0 || o.secure.BindPort > math.MaxUint16 {
		return fmt.Errorf("--%s must be from 1 to 65535, or 0 to serve nothing", portFlag)
	}
	if err := o.checkTLS(); err != nil {
		return err
	}
	return utilerrors.NewAggregate(o.authentication.Validate())
}

// requirePort returns an error if a flag would be ignored because no port is given.
func (o *Options) requirePort() error {
	var err error
	o.own.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed && err == nil && !o.own.Lookup(portFlag).Changed {
			err = fmt.Errorf("--%s has an effect only together with --%s", flag.Name, portFlag)
		}
	})
	return err
}

// checkTLS returns an error that names the flag whose value crypto/tls does not have.
func (o *Options) checkTLS() error {
	_, version := cliflag.TLSVersion(o.secure.MinTLSVersion)
	_, suites := cliflag.TLSCipherSuites(o.secure.CipherSuites)
	_, curves := cliflag.TLSCurvePreferences(o.secure.CurvePreferences)
	for _, checked := range []struct {
		flag string
		err  error
	}{{"tls-min-version", version}, {"tls-cipher-suites", suites}, {"tls-curve-preferences", curves}} {
		if checked.err != nil {
			return fmt.Errorf("use --%s: %w", checked.flag, checked.err)
		}
	}
	return nil
}

// flagValues returns the values of all flags that the program serves, by name.
func (o *Options) flagValues() cliflag.NamedFlagSets {
	served := pflag.NewFlagSet(o.program, pflag.ContinueOnError)
	o.all.VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden {
			served.AddFlag(flag)
		}
	})
	return cliflag.NamedFlagSets{FlagSets: map[string]*pflag.FlagSet{o.program: served}}
}
