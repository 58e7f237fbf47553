package controller

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/klog/v2"
)

// logInterval is the time between two log lines about the same wait.
const logInterval = 10 * time.Second

// WaitForCacheSync waits until every informer of the factory, which has been started, has
// its first list. It logs from time to time which informers have none, and the details:
// informers do not log that the server is unreachable. It returns false if the context ended first.
func WaitForCacheSync(ctx context.Context, factory informers.SharedInformerFactory, details func() []any) bool {
	defer LogRepeatedly(ctx, func() {
		klog.FromContext(ctx).Info("Still waiting for the API server to fill caches",
			append(details(), "missing", missing(factory))...)
	})()
	return factory.WaitForCacheSyncWithContext(ctx).Err == nil
}

// missing returns the kinds whose informer has no list yet.
func missing(factory informers.SharedInformerFactory) []string {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	var kinds []string
	for kind, synced := range factory.WaitForCacheSyncWithContext(now).Synced {
		if !synced {
			kinds = append(kinds, kind.Elem().Name())
		}
	}
	slices.Sort(kinds)
	return kinds
}

// LogRepeatedly calls log every 10 seconds until stop is called.
func LogRepeatedly(ctx context.Context, log func()) (stop func()) {
	logging, cancel := context.WithCancel(ctx)
	var logger sync.WaitGroup
	logger.Go(func() {
		ticker := time.NewTicker(logInterval)
		defer ticker.Stop()
		for {
			select {
			case <-logging.Done():
				return
			case <-ticker.C:
				log()
			}
		}
	})
	return func() {
		cancel()
		logger.Wait()
	}
}
