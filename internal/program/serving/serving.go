package serving

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"time"

	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/flagz"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/configz"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/prometheus/slis"
)

// drainTimeout is how long a stop waits for requests. The end of the process cuts off those
// that take longer.
const drainTimeout = time.Second

// Serve serves the secure port, if one was given, until stop is called. It fails if it
// cannot listen, load its certificate, or set up authentication.
func (o *Options) Serve(checks Checks) (stop func(), err error) {
	secure, err := o.listen()
	if err != nil {
		return nil, err
	}
	if secure == nil {
		return func() {}, nil
	}
	handler, err := o.protect(o.handler(checks), secure)
	if err != nil {
		return nil, errors.Join(err, secure.Listener.Close())
	}
	stopping := make(chan struct{})
	stopped, _, err := secure.Serve(handler, drainTimeout, stopping)
	if err != nil {
		close(stopping)
		err = fmt.Errorf("use --tls-cipher-suites for HTTP/2, or set --disable-http2-serving: %w", err)
		return nil, errors.Join(err, secure.Listener.Close())
	}
	return func() {
		close(stopping)
		<-stopped
	}, nil
}

// listen returns listener and certificates, nil if no port was given.
func (o *Options) listen() (*server.SecureServingInfo, error) {
	if err := o.secure.MaybeDefaultWithSelfSignedCerts("localhost", nil, []net.IP{net.IPv4(127, 0, 0, 1)}); err != nil {
		return nil, fmt.Errorf("generate certificate for --%s: %w", portFlag, err)
	}
	port := o.secure.BindPort
	var secure *server.SecureServingInfo
	if err := o.secure.ApplyTo(&secure); err != nil {
		return nil, fmt.Errorf("serve on --bind-address=%s --%s=%d: %w", o.secure.BindAddress, portFlag, port, err)
	}
	return secure, nil
}

// protect returns a handler that serves only requests that the API server authenticates
// and authorizes. Connections ask for the client certificates that it authenticates.
func (o *Options) protect(handler http.Handler, secure *server.SecureServingInfo) (http.Handler, error) {
	var (
		authentication server.AuthenticationInfo
		authorization  server.AuthorizationInfo
	)
	if err := o.authentication.ApplyTo(&authentication, secure, nil); err != nil {
		return nil, fmt.Errorf("set up authentication for --%s: %w", portFlag, err)
	}
	if err := o.authorization.ApplyTo(&authorization); err != nil {
		return nil, fmt.Errorf("set up authorization for --%s: %w", portFlag, err)
	}
	unauthorized := filters.Unauthorized(scheme.Codecs)
	handler = filters.WithAuthorization(handler, authorization.Authorizer, scheme.Codecs)
	handler = filters.WithAuthentication(handler, authentication.Authenticator, unauthorized, nil,
		authentication.RequestHeaderConfig)
	handler = filters.WithRequestInfo(handler, &request.RequestInfoFactory{})
	return filters.WithCacheControl(handler), nil
}

// handler returns the handler of all paths, without authentication.
func (o *Options) handler(checks Checks) http.Handler {
	paths := mux.NewPathRecorderMux(o.program)
	live := append([]healthz.HealthChecker{healthz.PingHealthz}, checks.Live...)
	healthz.InstallHandler(paths, live...)
	healthz.InstallLivezHandler(paths, live...)
	healthz.InstallReadyzHandler(paths, append([]healthz.HealthChecker{healthz.PingHealthz}, checks.Ready...)...)
	paths.Handle("/metrics", legacyregistry.Handler())
	for path, handler := range o.handlers {
		paths.Handle(path, handler)
	}
	slis.SLIMetrics{}.Install(paths)
	configz.InstallHandler(paths)
	o.profiling.install(paths)
	flagz.Install(paths, o.program, flagz.NamedFlagSetsReader{FlagSets: o.flagValues()})
	return paths
}

// Checks are the health checks. Everybody may read the names of failed checks; the reason
// of a failure is served only to users who may read the path of the check.
type Checks struct {
	// Live are the checks of /healthz and /livez, Ready those of /readyz.
	Live, Ready []healthz.HealthChecker
}

// errNotSynced is why a program is not ready at first.
var errNotSynced = errors.New("the cache has not synced yet")

// InformerSync returns a check for each cache, which fails until the cache has synced. The
// checks form the group informer-sync.
func InformerSync(caches map[string]cache.InformerSynced) []healthz.HealthChecker {
	checks := make([]healthz.HealthChecker, 0, len(caches))
	for _, name := range slices.Sorted(maps.Keys(caches)) {
		checks = append(checks, healthz.NamedGroupedCheck("informer-sync-"+name, "informer-sync", func(*http.Request) error {
			if !caches[name]() {
				return errNotSynced
			}
			return nil
		}))
	}
	return checks
}
