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
	store "github.com/exeunt-io/exeunt/pkg/provisioner/journal"
)

// serve answers for metrics at MetricsPort until the context ends, whether this process
// leads or not. As v10, it serves the metrics of the default registry, too.
func (c *ProvisionController) serve(ctx context.Context, journal *store.Metrics) error {
	if c.metricsPort == 0 {
		return nil
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(append(engine.Collectors(c.metrics), journal.Collectors()...)...)
	mux := http.NewServeMux()
	mux.Handle(c.metricsPath, promhttp.HandlerFor(prometheus.Gatherers{registry, prometheus.DefaultGatherer}, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}))
	address := net.JoinHostPort(c.metricsAddress, strconv.Itoa(int(c.metricsPort)))
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen at MetricsAddress and MetricsPort %s: %w", address, err)
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	klog.FromContext(ctx).Info("Serving metrics", "address", listener.Addr().String(), "path", c.metricsPath)
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			klog.FromContext(ctx).Error(err, "Serving metrics failed", "address", address)
		}
	}()
	return nil
}
