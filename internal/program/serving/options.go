package serving

import (
	"errors"
	"fmt"
	"math"

	"github.com/spf13/pflag"
	apioptions "k8s.io/apiserver/pkg/server/options"
	cliflag "k8s.io/component-base/cli/flag"
)

// portFlag turns serving on.
const portFlag = "secure-port"

// Options are the flags of the secure port. Nothing is served unless a port is given.
type Options struct {
	program        string
	secure         *apioptions.SecureServingOptions
	authentication *apioptions.DelegatingAuthenticationOptions
	authorization  *apioptions.DelegatingAuthorizationOptions
	profiling      profiling
	// own are the flags of these options, all those of the program.
	own, all *pflag.FlagSet
}

// NewOptions returns the defaults for the program of that name.
func NewOptions(program string) *Options {
	o := &Options{
		program:        program,
		secure:         apioptions.NewSecureServingOptions(),
		authentication: apioptions.NewDelegatingAuthenticationOptions(),
		authorization:  apioptions.NewDelegatingAuthorizationOptions(),
		own:            pflag.NewFlagSet("serving", pflag.ContinueOnError),
	}
	o.secure.BindPort = 0
	o.profiling.Enabled = true
	o.secure.ServerCert.CertDirectory, o.secure.ServerCert.PairName = "", program
	o.secure.AddFlags(o.own)
	o.authentication.AddFlags(o.own)
	o.authorization.AddFlags(o.own)
	o.profiling.addFlags(o.own)
	o.own.Lookup(portFlag).Usage = "port that serves /healthz, /livez, /readyz, /metrics, /configz, /flagz and profiles with authentication and authorization; " +
		"the default 0 serves nothing, so that several programs on one host never clash; 10270 is a good choice, beside 10257 of kube-controller-manager"
	for _, name := range []string{"authentication-kubeconfig", "authorization-kubeconfig"} {
		o.own.Lookup(name).Usage += " Without it, --kubeconfig or the service account of the pod is used."
	}
	return o
}

// AddFlags registers the flags.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.AddFlagSet(o.own)
	o.all = flags
}

// Complete checks the flags. Whoever answers for identities and rights is asked
// with the kubeconfig, unless a flag names another one.
func (o *Options) Complete(kubeconfig string) error {
	if err := o.effective(); err != nil {
		return err
	}
	if o.secure.BindPort < 0 || o.secure.BindPort > math.MaxUint16 {
		return fmt.Errorf("--%s must be from 1 to 65535, or 0 to serve nothing", portFlag)
	}
	for _, file := range []*string{&o.authentication.RemoteKubeConfigFile, &o.authorization.RemoteKubeConfigFile} {
		if *file == "" {
			*file = kubeconfig
		}
	}
	errs := append(o.secure.Validate(), o.authentication.Validate()...)
	return errors.Join(append(errs, o.authorization.Validate()...)...)
}

// effective refuses flags that would be ignored because nobody asked for a port.
func (o *Options) effective() error {
	var err error
	o.own.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed && err == nil && !o.own.Lookup(portFlag).Changed {
			err = fmt.Errorf("--%s has an effect only together with --%s", flag.Name, portFlag)
		}
	})
	return err
}

// flagValues are the values of all flags that the program serves, by name.
func (o *Options) flagValues() cliflag.NamedFlagSets {
	served := pflag.NewFlagSet(o.program, pflag.ContinueOnError)
	o.all.VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden {
			served.AddFlag(flag)
		}
	})
	return cliflag.NamedFlagSets{FlagSets: map[string]*pflag.FlagSet{o.program: served}}
}
