package process

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// informer is a cache that changes when the model wants it to: its handlers are called at
// once, in the goroutine of the caller.
type informer struct {
	cache.Indexer
	handlers  []cache.ResourceEventHandler
	transform cache.TransformFunc
	// keep drops the objects that a filtered informer does not have; nil keeps all.
	keep func(object runtime.Object) bool
}

var _ cache.SharedIndexInformer = (*informer)(nil)

func newInformer() *informer {
	return &informer{Indexer: cache.NewIndexer(
		cache.DeletionHandlingMetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc},
	)}
}

// see changes the cache to the version of the object, nil for a deleted one. A list does not show the
// last version of a deleted object.
func (i *informer) see(key string, object runtime.Object, listed bool) error {
	old, cached, err := i.GetByKey(key)
	if err != nil {
		return err
	}
	if object == nil || i.keep != nil && !i.keep(object) {
		if !cached {
			return nil
		}
		if err := i.Delete(old); err != nil {
			return err
		}
		last := old
		switch {
		case object != nil:
			last = object
		case listed:
			last = cache.DeletedFinalStateUnknown{Key: key, Obj: old}
		}
		for _, handler := range i.handlers {
			handler.OnDelete(last)
		}
		return nil
	}
	return i.replace(old, cached, object)
}

func (i *informer) replace(old any, cached bool, object runtime.Object) error {
	var now any = object
	if i.transform != nil {
		var err error
		if now, err = i.transform(object); err != nil {
			return err
		}
	}
	if err := i.Update(now); err != nil {
		return err
	}
	for _, handler := range i.handlers {
		if cached {
			handler.OnUpdate(old, now)
		} else {
			handler.OnAdd(now, false)
		}
	}
	return nil
}

// AddEventHandler calls the handler for every cached object before it returns.
func (i *informer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	i.handlers = append(i.handlers, handler)
	for _, key := range sortedKeys(i.Indexer) {
		object, _, err := i.GetByKey(key)
		if err != nil {
			return nil, err
		}
		handler.OnAdd(object, true)
	}
	return synced{}, nil
}

func (i *informer) AddEventHandlerWithResyncPeriod(
	handler cache.ResourceEventHandler, _ time.Duration,
) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(handler)
}

func (i *informer) AddEventHandlerWithOptions(
	handler cache.ResourceEventHandler, _ cache.HandlerOptions,
) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(handler)
}

func (i *informer) RemoveEventHandler(cache.ResourceEventHandlerRegistration) error { return nil }

func (i *informer) GetStore() cache.Store { return i.Indexer }

func (i *informer) GetIndexer() cache.Indexer { return i.Indexer }

func (i *informer) GetController() cache.Controller { return nil }

func (i *informer) Run(<-chan struct{}) {}

func (i *informer) RunWithContext(context.Context) {}

func (i *informer) HasSynced() bool { return true }

func (i *informer) HasSyncedChecker() cache.DoneChecker { return synced{} }

func (i *informer) LastSyncResourceVersion() string { return "" }

func (i *informer) SetWatchErrorHandler(cache.WatchErrorHandler) error { return nil }

func (i *informer) SetWatchErrorHandlerWithContext(cache.WatchErrorHandlerWithContext) error {
	return nil
}

func (i *informer) SetTransform(transform cache.TransformFunc) error {
	i.transform = transform
	return nil
}

func (i *informer) IsStopped() bool { return false }

// synced is the state of a cache that is filled before its program starts.
type synced struct{}

func (synced) HasSynced() bool { return true }

func (synced) HasSyncedChecker() cache.DoneChecker { return synced{} }

func (synced) Name() string { return "model" }

func (synced) Done() <-chan struct{} {
	closed := make(chan struct{})
	close(closed)
	return closed
}
