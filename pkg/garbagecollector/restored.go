package garbagecollector

import (
	"context"
	"errors"
	"sync"

	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

// ErrRestored is returned when a list or a read of Kubernetes itself is older than what the collector knows. Nothing
// that the collector remembers is true then: neither objects and references, nor absent owners, nor what a barrier
// has read.
var ErrRestored = errors.New("the API server returned an older state than before: etcd was restored from a backup; " +
	"stopping, so that nothing which this process remembers is used")

// errBehind means that an aggregated API server answered a read with an older state than its watch had delivered.
var errBehind = errors.New("the read is older than what the watch delivered")

// restore ends the collector once etcd was restored from a backup. It may be used with any mutex held.
type restore struct {
	once sync.Once
	// restored is closed when the collector ends.
	restored chan struct{}
}

func newRestore() *restore { return &restore{restored: make(chan struct{})} }

// end ends the collector, because of an answer about the kind.
func (r *restore) end(kind *graph.Kind) {
	r.once.Do(func() {
		klog.Background().Error(ErrRestored, "Ending", "resource", kind.GroupResource())
		close(r.restored)
	})
}

// isRestored reports whether the collector has ended.
func (r *restore) isRestored() bool {
	select {
	case <-r.restored:
		return true
	default:
		return false
	}
}

// untilRestored returns a context that ends with the collector, too. The function returns [ErrRestored] if the
// collector has ended.
func (r *restore) untilRestored(ctx context.Context) (context.Context, func() error) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-r.restored:
		case <-ctx.Done():
		}
		cancel()
	}()
	return ctx, func() error {
		cancel()
		if r.isRestored() {
			return ErrRestored
		}
		return nil
	}
}
