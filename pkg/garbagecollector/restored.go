package garbagecollector

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

// ErrRestored is returned when a list or a read of Kubernetes itself is older than what the collector knows. Nothing that the
// collector remembers is true then: neither objects and references, nor absent owners, nor what a barrier has read.
var ErrRestored = errors.New("the API server returned an older state than before: etcd was restored from a backup; stopping, so that nothing which this process remembers is used")

// errBehind means that an aggregated API server answered a read with an older state than its watch had delivered.
var errBehind = errors.New("the read is older than what the watch delivered")

// end ends the collector. The caller holds the lock.
func (c *Collector) end(kind *graph.Kind) {
	if c.isRestored() {
		return
	}
	klog.Background().Error(ErrRestored, "Ending", "resource", kind.GroupResource())
	close(c.restored)
}

// isRestored reports whether the collector has ended.
func (c *Collector) isRestored() bool {
	select {
	case <-c.restored:
		return true
	default:
		return false
	}
}

// untilRestored returns a context that ends with the collector, too. The function returns [ErrRestored] if the collector has ended.
func (c *Collector) untilRestored(ctx context.Context) (context.Context, func() error) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-c.restored:
		case <-ctx.Done():
		}
		cancel()
	}()
	return ctx, func() error {
		cancel()
		if c.isRestored() {
			return ErrRestored
		}
		return nil
	}
}

// checkedList sends a list request. Only an aggregated API server may answer without a version.
func (c *Collector) checkedList(kind *graph.Kind, list func() (*metav1.PartialObjectMetadataList, error)) (*metav1.PartialObjectMetadataList, error) {
	found, err := list()
	if c.mayIgnorePreconditions(kind) {
		return found, err
	}
	return answer.CheckedList(found, err)
}
