package demo

import (
	"context"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// objects are the volumes and claims of the API server, updated by a watch.
type objects struct {
	volumes corelisters.PersistentVolumeLister
	claims  corelisters.PersistentVolumeClaimLister
	tell    func(Event)

	mu      sync.Mutex
	changed chan struct{}     // closed with the next change
	last    map[string]string // last event text, by object
}

// watchObjects watches the objects and calls tell for each new state, until ctx ends or
// stop is called. It returns once all existing objects are known.
func watchObjects(ctx context.Context, client kubernetes.Interface,
	tell func(Event)) (watched *objects, stop func(), err error) {
	factory := informers.NewSharedInformerFactory(client, 0)
	core := factory.Core().V1()
	watched = &objects{
		volumes: core.PersistentVolumes().Lister(),
		claims:  core.PersistentVolumeClaims().Lister(),
		tell:    tell,
		changed: make(chan struct{}),
		last:    map[string]string{},
	}
	for _, informer := range []cache.SharedInformer{core.PersistentVolumes().Informer(),
		core.PersistentVolumeClaims().Informer()} {
		if _, err := informer.AddEventHandler(watched.handler()); err != nil {
			return nil, nil, fmt.Errorf("watch objects: %w", err)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	stop = func() {
		cancel()
		factory.Shutdown()
	}
	factory.StartWithContext(ctx)
	if err := factory.WaitForCacheSyncWithContext(ctx).AsError(); err != nil {
		stop()
		return nil, nil, fmt.Errorf("watch objects: %w", err)
	}
	return watched, stop, nil
}

// handler returns the handler of all changes.
func (o *objects) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { o.note(object, false) },
		UpdateFunc: func(_, object any) { o.note(object, false) },
		DeleteFunc: func(object any) {
			if last, unseen := object.(cache.DeletedFinalStateUnknown); unseen {
				object = last.Obj
			}
			o.note(object, true)
		},
	}
}

// note calls tell if the state of the object is new, and wakes all waiters.
func (o *objects) note(object any, gone bool) {
	var event Event
	switch object := object.(type) {
	case *v1.PersistentVolume:
		event = describeVolume(object, gone, time.Now())
	case *v1.PersistentVolumeClaim:
		event = describeClaim(object, gone, time.Now())
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.changed)
	o.changed = make(chan struct{})
	if o.last[event.Object] != event.What {
		o.last[event.Object] = event.What
		o.tell(event)
	}
}

// await waits until holds returns true; what completes "wait until". The error is the
// cause of the end of ctx.
func (o *objects) await(ctx context.Context, what string, holds func() bool) error {
	for {
		o.mu.Lock()
		changed := o.changed
		o.mu.Unlock()
		if holds() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait until %s: %w", what, context.Cause(ctx))
		}
	}
}

// volume returns the volume with the name, or nil.
func (o *objects) volume(name string) *v1.PersistentVolume {
	volume, err := o.volumes.Get(name)
	if err != nil { // a lister has no other error than "not found"
		return nil
	}
	return volume
}

// claim returns the claim with the name in the demo's namespace, or nil.
func (o *objects) claim(name string) *v1.PersistentVolumeClaim {
	claim, err := o.claims.PersistentVolumeClaims(namespace).Get(name)
	if err != nil {
		return nil
	}
	return claim
}
