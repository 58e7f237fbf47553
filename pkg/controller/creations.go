package controller

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// Creations has the UIDs of objects whose creation a watch has shown since the last list. An object of a list may be
// older than this process, and may have come back with a restore of etcd: nothing proves what was done for it before.
// It is safe for concurrent use; nil has no object.
type Creations struct {
	// done reports whether an object needs to be remembered no longer.
	done func(object metav1.Object) bool

	mu   sync.Mutex
	seen map[types.UID]bool
}

// NewCreations returns creations that forget an object once done returns true for it.
func NewCreations(done func(object metav1.Object) bool) *Creations {
	return &Creations{done: done, seen: map[types.UID]bool{}}
}

// Has reports whether a watch has shown the creation of the object.
func (c *Creations) Has(uid types.UID) bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen[uid]
}

// Reset forgets all objects.
func (c *Creations) Reset() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.seen)
}

// Observe records the event of a watch that began after a list.
func (c *Creations) Observe(event watch.Event) {
	object, ok := event.Object.(metav1.Object)
	if !ok || event.Type == watch.Bookmark || event.Type == watch.Error {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case event.Type == watch.Deleted || c.done(object):
		delete(c.seen, object.GetUID())
	case event.Type == watch.Added:
		c.seen[object.GetUID()] = true
	}
}

// Track returns a source that also records the creations. Each list forgets them.
func (c *Creations) Track(source *cache.ListWatch) *cache.ListWatch {
	tracked := *source
	tracked.ListWithContextFunc = func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		c.Reset()
		return source.ListWithContextFunc(ctx, options)
	}
	tracked.WatchFuncWithContext = func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		lists := beginsWithObjects(options)
		if lists {
			c.Reset()
		}
		watched, err := source.WatchFuncWithContext(ctx, options)
		if err != nil {
			return nil, err
		}
		return watch.Filter(watched, func(event watch.Event) (watch.Event, bool) {
			if !lists {
				c.Observe(event)
			}
			lists = lists && !isEndOfObjects(event)
			return event, true
		}), nil
	}
	return &tracked
}
