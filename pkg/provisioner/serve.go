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
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/provisioner/engine"
)

// listenAgain is the time until the next attempt to listen at a port that is in use, as of another replica on the node.
const listenAgain = 5 * time.Second

// serve answers for metrics at MetricsPort until the context ends, whether this process
// leads or not. As v10, it tries again if it cannot listen, and serves the metrics of the default registry and the handlers of
// [http.DefaultServeMux], too.
func (c *ProvisionController) serve(ctx context.Context, own []prometheus.Collector, again time.Duration) {
	if c.metricsPort == 0 {
		return
	}
	address := net.JoinHostPort(c.metricsAddress, strconv.Itoa(int(c.metricsPort)))
	server := &http.Server{Handler: c.handler(own), ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := c.listen(ctx, server, address); !errors.Is(err, http.ErrServerClosed) && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Serving metrics failed, trying again", "address", address, "after", again)
		}
	}, again)
}

// listen serves at the address until the server is closed.
func (c *ProvisionController) listen(ctx context.Context, server *http.Server, address string) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen at MetricsAddress and MetricsPort %s: %w", address, err)
	}
	klog.FromContext(ctx).Info("Serving metrics", "address", listener.Addr().String(), "path", c.metricsPath)
	return server.Serve(listener)
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
