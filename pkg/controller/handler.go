package controller

import (
	"context"
	"fmt"

	"k8s.io/client-go/tools/cache"
)

// EventHandler is an event handler and the informer that calls it.
type EventHandler struct {
	Informer cache.SharedIndexInformer
	Handler  cache.ResourceEventHandler
}

// RegisterHandlers registers event handlers with informers that have been started, and
// waits until each handler has been called for every object in its cache. A controller
// does so when it starts to work: on standby it keeps caches only, no queue.
func RegisterHandlers(ctx context.Context, handlers ...EventHandler) error {
	replayed := make([]cache.DoneChecker, 0, len(handlers))
	for _, h := range handlers {
		registration, err := h.Informer.AddEventHandler(h.Handler)
		if err != nil {
			return fmt.Errorf("register event handler: %w", err)
		}
		replayed = append(replayed, registration.HasSyncedChecker())
	}
	if !cache.WaitFor(ctx, "", replayed...) {
		return fmt.Errorf("wait for event handlers: %w", context.Cause(ctx))
	}
	return nil
}

// OnReplay returns a handler that calls replayed for each object that was in the cache when the handler was
// registered, and the other handler for everything after that. Where a handler enqueues all objects of another
// kind, an object of the cache need not enqueue those that it concerns: nothing leaves a queue before all
// handlers are registered.
func OnReplay[T Object](replayed func(T), then cache.ResourceEventHandler) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, inCache bool) {
			if typed, ok := object.(T); ok && inCache {
				replayed(typed)
				return
			}
			then.OnAdd(object, inCache)
		},
		UpdateFunc: then.OnUpdate,
		DeleteFunc: then.OnDelete,
	}
}

// Ignore does nothing with an object of the cache; see [OnReplay].
func Ignore[T Object](T) {}

// OnChange returns a handler that calls changed for an object that is new (old is
// nil) or has another resource version than before, and gone for a deleted object. A
// resync calls neither. An object that replaced another one of the same name calls
// gone for the old object first.
func OnChange[T Object](changed func(old, now T), gone func(T)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			var none T
			if now, ok := object.(T); ok {
				changed(none, now)
			}
		},
		UpdateFunc: func(before, after any) {
			old, wasT := before.(T)
			now, isT := after.(T)
			switch {
			case !wasT || !isT || old.GetResourceVersion() == now.GetResourceVersion():
			case old.GetUID() != now.GetUID(): // the watch missed the deletion
				var none T
				gone(old)
				changed(none, now)
			default:
				changed(old, now)
			}
		},
		DeleteFunc: func(object any) {
			if tombstone, missed := object.(cache.DeletedFinalStateUnknown); missed {
				object = tombstone.Obj
			}
			if last, ok := object.(T); ok {
				gone(last)
			}
		},
	}
}
