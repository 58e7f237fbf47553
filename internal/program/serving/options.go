package serving

import (
	"fmt"
	"math"
	"net"
	"net/http"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
)

// portFlag enables serving.
const portFlag = "secure-port"

// Options are the flags of the secure port. Nothing is served unless a port is given.
type Options struct {
	program        string
	secure         secureOptions
	authentication authenticationOptions
	authorization  authorizationOptions
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
		secure:         secureOptions{bindAddress: net.IPv4zero},
		authentication: newAuthenticationOptions(),
		authorization:  newAuthorizationOptions(),
		profiling:      profiling{Enabled: true},
		own:            pflag.NewFlagSet("serving", pflag.ContinueOnError),
	}
	o.secure.addFlags(o.own)
	o.authentication.addFlags(o.own)
	o.authorization.addFlags(o.own)
	o.profiling.addFlags(o.own)
	return o
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
	if o.secure.port < 0 || o.secure.port > math.MaxUint16 {
		return fmt.Errorf("--%s must be from 1 to 65535, or 0 to serve nothing", portFlag)
	}
	for _, file := range []*string{&o.authentication.kubeconfig, &o.authorization.kubeconfig} {
		if *file == "" {
			*file = kubeconfig
		}
	}
	return o.authentication.validate()
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
