package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kubernetes-csi/csi-lib-utils/metrics"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
)

// servingOptions are the flags of the HTTP endpoint.
type servingOptions struct {
	// endpoint and deprecated are two flags for one address; empty for no endpoint.
	endpoint, deprecated string
	metricsPath          string
	profile              bool
}

func (o *servingOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.endpoint, "http-endpoint", o.endpoint,
		"address of metrics and health, such as :8080; empty for none")
	flags.StringVar(&o.deprecated, "metrics-address", o.deprecated, "deprecated: the former name of --http-endpoint")
	flags.StringVar(&o.metricsPath, "metrics-path", o.metricsPath, "path of metrics at --http-endpoint")
	flags.BoolVar(&o.profile, "enable-pprof", o.profile, "serve profiles at --http-endpoint, below /debug/pprof/")
}

func (o *servingOptions) check() error {
	switch {
	case o.endpoint != "" && o.deprecated != "":
		return errors.New("only one of --http-endpoint and --metrics-address can be given: they are two names of one flag")
	case o.profile && o.address() == "":
		return errors.New("--enable-pprof needs --http-endpoint, the address of the profiles")
	case len(o.metricsPath) == 0 || o.metricsPath[0] != '/':
		return errors.New("--metrics-path must begin with /")
	case slices.Contains(reservedPaths, o.metricsPath):
		return fmt.Errorf("--metrics-path=%s is the path of health or a profile; give another path, such as /metrics",
			o.metricsPath)
	case !plainPath.MatchString(o.metricsPath) || o.metricsPath != "/" &&
		path.Clean(o.metricsPath) != strings.TrimSuffix(o.metricsPath, "/"):
		return fmt.Errorf("--metrics-path=%q cannot be served; give a path of letters, digits and -._~ between slashes, such as /metrics", o.metricsPath)
	}
	return nil
}

// Paths other than that of metrics.
const (
	health      = "/healthz"
	healthLease = "/healthz/leader-election"
	profiles    = "/debug/pprof/"
)

// reservedPaths are all paths that --metrics-path must not be. They do not depend on other
// flags.
var reservedPaths = []string{health, healthLease, profiles, profiles + "cmdline", profiles + "profile",
	profiles + "symbol", profiles + "trace"}

// plainPath matches paths without the special characters of http.ServeMux patterns.
var plainPath = regexp.MustCompile(`^(/[A-Za-z0-9._~$&'()*+,;=:@!-]+)*/?$`)

func (o *servingOptions) address() string {
	return o.endpoint + o.deprecated // check allows one of them
}

// serve serves metrics and health at --http-endpoint until the context ends, on the leader
// and on standby.
func serve(ctx context.Context, options *options, watchdog *leaderelection.HealthzAdaptor,
	calls metrics.CSIMetricsManager, own []prometheus.Collector) error {
	address := options.serving.address()
	if address == "" {
		return nil
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen at --http-endpoint %s: %w", address, err)
	}
	mux := http.NewServeMux()
	mux.Handle(options.serving.metricsPath, metricsHandler(calls, own))
	handleHealth(mux, options, watchdog)
	if options.serving.profile {
		handleProfiles(mux)
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	klog.FromContext(ctx).Info("Serving metrics and health", "address", listener.Addr().String(), "path",
		options.serving.metricsPath)
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			klog.FromContext(ctx).Error(err, "Serving metrics failed", "address", address)
		}
	}()
	return nil
}

// metricsHandler serves the metrics of driver calls, of the libraries and of this program. As
// upstream's handler, it counts its requests (promhttp_*).
func metricsHandler(calls metrics.CSIMetricsManager, own []prometheus.Collector) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(own...)
	current := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return calls.GetRegistry().Gather() }) // it depends on the driver's name
	all := prometheus.Gatherers{current, legacyregistry.DefaultGatherer, registry}
	return promhttp.InstrumentMetricHandler(registry, promhttp.HandlerFor(all,
		promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}))
}

// handleHealth serves the health of the process and, with leader election, of its lease.
func handleHealth(mux *http.ServeMux, options *options, watchdog *leaderelection.HealthzAdaptor) {
	mux.HandleFunc(health, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	if !options.election.enabled {
		return
	}
	mux.HandleFunc(healthLease, func(w http.ResponseWriter, r *http.Request) {
		if err := watchdog.Check(r); err != nil {
			http.Error(w, fmt.Sprintf("internal server error: %v", err), http.StatusInternalServerError)
			return
		}
		_, _ = fmt.Fprint(w, "ok")
	})
}

func handleProfiles(mux *http.ServeMux) {
	mux.HandleFunc(profiles, pprof.Index)
	mux.HandleFunc(profiles+"cmdline", pprof.Cmdline)
	mux.HandleFunc(profiles+"profile", pprof.Profile)
	mux.HandleFunc(profiles+"symbol", pprof.Symbol)
	mux.HandleFunc(profiles+"trace", pprof.Trace)
}
