package program

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/core"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/informers/storage"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Informers are shared informers that remember the event handlers added to them: a
// handler can be thousands of objects behind the store of its informer. Handlers are
// added before the start.
type Informers struct {
	factory informers.SharedInformerFactory

	mu       sync.Mutex
	handlers []cache.ResourceEventHandlerRegistration
}

// NewInformers returns informers of all namespaces.
func NewInformers(client kubernetes.Interface, options ...informers.SharedInformerOption) *Informers {
	return &Informers{factory: informers.NewSharedInformerFactoryWithOptions(client, 0, options...)}
}

// Core are the informers of the core group.
func (i *Informers) Core() core.Interface { return core.New(i, "", nil) }

// Storage are the informers of the group storage.k8s.io.
func (i *Informers) Storage() storage.Interface { return storage.New(i, "", nil) }

// InformerFor returns the informer of the object's kind, made by create the first time.
func (i *Informers) InformerFor(object runtime.Object, create internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	return &recordingInformer{SharedIndexInformer: i.factory.InformerFor(object, create), informers: i}
}

// Start starts all informers that have not been started.
func (i *Informers) Start(stop <-chan struct{}) { i.factory.Start(stop) }

// StartWithContext starts all informers that have not been started.
func (i *Informers) StartWithContext(ctx context.Context) { i.factory.StartWithContext(ctx) }

// InformerName implements the interface that typed informers need.
func (i *Informers) InformerName() *cache.InformerName { return i.factory.InformerName() }

// Shutdown waits until all informers have ended.
func (i *Informers) Shutdown() { i.factory.Shutdown() }

// waitForSync waits until every store has the first list, and every handler has been
// called for it. It returns false if the context ended first.
func (i *Informers) waitForSync(ctx context.Context) bool {
	if i.factory.WaitForCacheSyncWithContext(ctx).Err != nil {
		return false
	}
	return cache.WaitFor(ctx, "", i.checkers()...)
}

// remember keeps the registration of a handler, unless it failed.
func (i *Informers) remember(registration cache.ResourceEventHandlerRegistration, err error) (cache.ResourceEventHandlerRegistration, error) {
	if err == nil {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.handlers = append(i.handlers, registration)
	}
	return registration, err
}

// missing are the kinds whose store has no list yet, and else the handlers that have
// not been called for all of it.
func (i *Informers) missing() []string {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	var names []string
	for kind, synced := range i.factory.WaitForCacheSyncWithContext(now).Synced {
		if !synced {
			names = append(names, kind.Elem().Name())
		}
	}
	if len(names) == 0 {
		for _, checker := range i.checkers() {
			if !cache.IsDone(checker) {
				names = append(names, checker.Name())
			}
		}
	}
	slices.Sort(names)
	return names
}

func (i *Informers) checkers() []cache.DoneChecker {
	i.mu.Lock()
	defer i.mu.Unlock()
	checkers := make([]cache.DoneChecker, len(i.handlers))
	for n, handler := range i.handlers {
		checkers[n] = handler.HasSyncedChecker()
	}
	return checkers
}

// recordingInformer is an informer whose handlers are remembered.
type recordingInformer struct {
	cache.SharedIndexInformer
	informers *Informers
}

// AddEventHandler adds a handler.
func (r *recordingInformer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return r.informers.remember(r.SharedIndexInformer.AddEventHandler(handler))
}

// AddEventHandlerWithResyncPeriod adds a handler.
func (r *recordingInformer) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler, resync time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return r.informers.remember(r.SharedIndexInformer.AddEventHandlerWithResyncPeriod(handler, resync))
}

// AddEventHandlerWithOptions adds a handler.
func (r *recordingInformer) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, options cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return r.informers.remember(r.SharedIndexInformer.AddEventHandlerWithOptions(handler, options))
}
