package load

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// watched is how far watches have come. The lock is also that of what they reported.
type watched struct {
	mu sync.Mutex
	// versions are by resource.
	versions map[string]string
	err      error
	// changed is closed and replaced by each event.
	changed chan struct{}
}

func newWatched(versions map[string]string) watched {
	return watched{versions: versions, changed: make(chan struct{})}
}

// watchFunc opens a watch from a version.
type watchFunc func(context.Context, metav1.ListOptions) (watch.Interface, error)

// follow passes events to note until ctx ends. A watch that ends is opened again.
func (w *watched) follow(ctx context.Context, events watch.Interface, resource string, open watchFunc,
	note func(string, watch.EventType, runtime.Object)) {
	for {
		for event := range events.ResultChan() {
			if event.Type == watch.Error {
				w.fail(fmt.Errorf("watch %s: %v", resource, event.Object))
				return
			}
			note(resource, event.Type, event.Object)
		}
		if ctx.Err() != nil {
			return
		}
		var err error
		if events, err = open(ctx, metav1.ListOptions{ResourceVersion: w.version(resource)}); err != nil {
			w.fail(fmt.Errorf("watch %s: %w", resource, err))
			return
		}
	}
}

// advance notes the version of an event, and lets await look again. The caller has the lock.
func (w *watched) advance(resource string, object runtime.Object) {
	if accessor, err := meta.Accessor(object); err == nil {
		w.versions[resource] = accessor.GetResourceVersion()
	}
	w.wake()
}

// version returns the version up to which the watch of a resource has come.
func (w *watched) version(resource string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.versions[resource]
}

func (w *watched) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
	w.wake()
}

func (w *watched) wake() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// await waits until done is true. The error of a wait that ends before has the summary.
func (w *watched) await(ctx context.Context, what string, done func() bool, summary func() string) error {
	for {
		w.mu.Lock()
		changed, ready, err := w.changed, done(), w.err
		w.mu.Unlock()
		if ready || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			w.mu.Lock()
			defer w.mu.Unlock()
			return fmt.Errorf("wait until %s: %w: %s", what, context.Cause(ctx), summary())
		}
	}
}
