package serving

import (
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/server"
	genericfilters "k8s.io/apiserver/pkg/server/filters"
	"k8s.io/apiserver/pkg/server/flagz"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/component-base/configz"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/prometheus/slis"
)

// drain is how long requests may go on when serving stops.
const drain = time.Second

// Serve answers on the secure port, if one was given, until stop is called. It
// fails if it cannot listen, load its certificate, or learn whom to trust.
func (o *Options) Serve(checks Checks) (stop func(), err error) {
	if o.secure.BindPort == 0 && o.secure.Listener == nil {
		return func() {}, nil
	}
	secure, err := o.listen()
	if err != nil {
		return nil, err
	}
	handler, err := o.guard(o.handler(checks), secure)
	if err != nil {
		_ = secure.Listener.Close()
		return nil, err
	}
	stopping := make(chan struct{})
	drained, closed, err := secure.Serve(handler, drain, stopping)
	if err != nil {
		_ = secure.Listener.Close()
		return nil, fmt.Errorf("serve on --%s: %w", portFlag, err)
	}
	return func() {
		close(stopping)
		<-closed
		<-drained
	}, nil
}

// listen opens the port and loads the certificate, or makes one that it signs itself.
func (o *Options) listen() (*server.SecureServingInfo, error) {
	if err := o.secure.MaybeDefaultWithSelfSignedCerts("localhost", nil, []net.IP{net.IPv4(127, 0, 0, 1)}); err != nil {
		return nil, fmt.Errorf("make certificate: %w", err)
	}
	port := o.secure.BindPort // of which a failure leaves nothing
	var secure *server.SecureServingInfo
	if err := o.secure.ApplyTo(&secure); err != nil {
		return nil, fmt.Errorf("serve on --bind-address=%s --%s=%d: %w", o.secure.BindAddress, portFlag, port, err)
	}
	return secure, nil
}

// guard lets through whom the API server knows and allows to read the path.
func (o *Options) guard(handler http.Handler, secure *server.SecureServingInfo) (http.Handler, error) {
	var who server.AuthenticationInfo
	if err := o.authentication.ApplyTo(&who, secure, nil); err != nil {
		return nil, fmt.Errorf("set up authentication for --%s: %w", portFlag, err)
	}
	var may server.AuthorizationInfo
	if err := o.authorization.ApplyTo(&may); err != nil {
		return nil, fmt.Errorf("set up authorization for --%s: %w", portFlag, err)
	}
	paths := &request.RequestInfoFactory{}
	unknown := filters.Unauthorized(scheme.Codecs)
	handler = filters.WithAuthorization(handler, may.Authorizer, scheme.Codecs)
	handler = filters.WithAuthentication(handler, who.Authenticator, unknown, nil, who.RequestHeaderConfig)
	handler = filters.WithRequestInfo(handler, paths)
	handler = filters.WithCacheControl(handler)
	return genericfilters.WithPanicRecovery(handler, paths), nil
}

// handler answers on every path, to everybody.
func (o *Options) handler(checks Checks) http.Handler {
	paths := mux.NewPathRecorderMux(o.program)
	live := append([]healthz.HealthChecker{healthz.PingHealthz}, checks.Live...)
	healthz.InstallHandler(paths, live...)
	healthz.InstallLivezHandler(paths, live...)
	healthz.InstallReadyzHandler(paths, append([]healthz.HealthChecker{healthz.PingHealthz}, checks.Ready...)...)
	paths.Handle("/metrics", legacyregistry.Handler())
	slis.SLIMetrics{}.Install(paths)
	configz.InstallHandler(paths)
	o.profiling.install(paths)
	flagz.Install(paths, o.program, flagz.NamedFlagSetsReader{FlagSets: o.flagValues()})
	return paths
}
