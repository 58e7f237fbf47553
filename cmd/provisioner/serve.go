package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/kubernetes-csi/csi-lib-utils/metrics"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
)

// serve answers for metrics and health at --http-endpoint until the context ends.
func serve(ctx context.Context, options *options, calls metrics.CSIMetricsManager, own []prometheus.Collector) error {
	if options.httpEndpoint == "" {
		return nil
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", options.httpEndpoint)
	if err != nil {
		return fmt.Errorf("listen at --http-endpoint %s: %w", options.httpEndpoint, err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(own...)
	mux := http.NewServeMux()
	calls.WithAdditionalRegistry(prometheus.Gatherers{registry, legacyregistry.DefaultGatherer}).RegisterToServer(mux, options.metricsPath)
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	klog.FromContext(ctx).Info("Serving metrics and health", "address", listener.Addr().String(), "path", options.metricsPath)
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			klog.FromContext(ctx).Error(err, "Serving metrics failed", "address", options.httpEndpoint)
		}
	}()
	return nil
}
