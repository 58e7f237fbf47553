package serving

import (
	"context"
	"errors"
	"fmt"
	"log"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/server/flagz"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/configz"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/prometheus/slis"
	"k8s.io/klog/v2"
)

const (
	// drainTimeout is how long requests may go on when serving stops.
	drainTimeout = time.Second
	// idleTimeout is that of http.DefaultTransport, so that clients close connections first.
	idleTimeout   = 90 * time.Second
	headerTimeout = 32 * time.Second
	maxHeader     = 1 << 20
	// defaultStreams bounds the work that one HTTP/2 connection can cause.
	defaultStreams = 100
)

// Serve serves the secure port, if one was given, until stop is called. It fails if it
// cannot listen, load its certificate, or set up authentication.
func (o *Options) Serve(checks Checks) (stop func(), err error) {
	if o.secure.port == 0 && o.secure.listener == nil {
		return func() {}, nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	listener, err := o.secure.listen(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	server, err := o.server(ctx, checks)
	if err != nil {
		cancel()
		_ = listener.Close()
		return nil, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			panic(fmt.Sprintf("serving on --%s ended: %v", portFlag, err))
		}
	}()
	return func() {
		defer cancel()
		draining, stopDraining := context.WithTimeout(ctx, drainTimeout)
		defer stopDraining()
		if server.Shutdown(draining) != nil {
			_ = server.Close() // cuts off the requests that take longer
		}
		<-ended
	}, nil
}

// server returns the server; its certificates and client CAs are followed until the
// context ends.
func (o *Options) server(ctx context.Context, checks Checks) (*http.Server, error) {
	authentication, clientCA, err := o.authentication.config(ctx)
	if err != nil {
		return nil, fmt.Errorf("set up authentication for --%s: %w", portFlag, err)
	}
	tlsConfig, err := o.secure.tlsConfig(ctx, o.program, clientCA)
	if err != nil {
		return nil, fmt.Errorf("set up TLS for --%s: %w", portFlag, err)
	}
	handler, err := o.protect(o.handler(checks), authentication)
	if err != nil {
		return nil, err
	}
	server := &http.Server{
		Handler: handler, TLSConfig: tlsConfig, Protocols: new(http.Protocols),
		IdleTimeout: idleTimeout, ReadHeaderTimeout: headerTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog:    log.New(errorLog{}, "", 0),
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	server.Protocols.SetHTTP1(true)
	if o.secure.noHTTP2 {
		return server, nil
	}
	server.Protocols.SetHTTP2(true)
	streams := defaultStreams
	if o.secure.maxStreams > 0 {
		streams = o.secure.maxStreams
	}
	//nolint:staticcheck // net/http by itself would refuse --tls-cipher-suites only when it serves
	if err := http2.ConfigureServer(server, &http2.Server{MaxConcurrentStreams: uint32(streams)}); err != nil {
		return nil, fmt.Errorf("use --tls-cipher-suites for HTTP/2, or set --disable-http2-serving: %w", err)
	}
	return server, nil
}

// errorLog logs the errors of the server and the panics of its handlers; failed handshakes
// only at a high verbosity, because any port scan causes them.
type errorLog struct{}

// Write logs one error.
func (errorLog) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	if strings.Contains(text, "TLS handshake error") {
		klog.V(5).Info(text)
	} else {
		klog.Error(text)
	}
	return len(line), nil
}

// protect returns a handler that serves only requests that the API server authenticates
// and authorizes.
func (o *Options) protect(handler http.Handler, authentication *authenticatorfactory.DelegatingAuthenticatorConfig) (http.Handler, error) {
	authenticator, _, err := authentication.New()
	if err != nil {
		return nil, fmt.Errorf("set up authentication for --%s: %w", portFlag, err)
	}
	authorizer, err := o.authorization.authorizer()
	if err != nil {
		return nil, fmt.Errorf("set up authorization for --%s: %w", portFlag, err)
	}
	unauthorized := filters.Unauthorized(scheme.Codecs)
	handler = filters.WithAuthorization(handler, authorizer, scheme.Codecs)
	handler = filters.WithAuthentication(handler, authenticator, unauthorized, nil, authentication.RequestHeaderConfig)
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
