package provisioner

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/provisioner/engine"
)

// serve answers for metrics at MetricsPort until the context ends, whether this process
// leads or not. As v10, it serves the metrics of the default registry and the handlers of
// [http.DefaultServeMux], too.
func (c *ProvisionController) serve(ctx context.Context, own []prometheus.Collector) error {
	if c.metricsPort == 0 {
		return nil
	}
	address := net.JoinHostPort(c.metricsAddress, strconv.Itoa(int(c.metricsPort)))
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen at MetricsAddress and MetricsPort %s: %w", address, err)
	}
	server := &http.Server{Handler: c.handler(own), ReadHeaderTimeout: 10 * time.Second}
	klog.FromContext(ctx).Info("Serving metrics", "address", listener.Addr().String(), "path", c.metricsPath)
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			klog.FromContext(ctx).Error(err, "Serving metrics failed", "address", address)
		}
	}()
	return nil
}

// handler answers for metrics, and lets the program's own handlers answer for other paths.
func (c *ProvisionController) handler(own []prometheus.Collector) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(append(engine.Collectors(c.metrics), own...)...)
	mux := http.NewServeMux()
	mux.Handle(c.metricsPath, promhttp.HandlerFor(prometheus.Gatherers{registry, prometheus.DefaultGatherer}, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}))
	if c.metricsPath != "/" {
		mux.Handle("/", http.DefaultServeMux)
	}
	return mux
}
