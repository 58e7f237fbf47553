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

// objects are the volumes and claims that the API server has, kept current by a
// watch.
type objects struct {
	volumes corelisters.PersistentVolumeLister
	claims  corelisters.PersistentVolumeClaimLister
	tell    func(Event)

	mu      sync.Mutex
	changed chan struct{}     // closed with the next change
	told    map[string]string // what was told last, by object
}

// watchObjects watches, and tells what objects become, until ctx ends or stop is
// called. It returns once it knows all objects that there are.
func watchObjects(ctx context.Context, client kubernetes.Interface, tell func(Event)) (watched *objects, stop func(), err error) {
	factory := informers.NewSharedInformerFactory(client, 0)
	core := factory.Core().V1()
	watched = &objects{
		volumes: core.PersistentVolumes().Lister(),
		claims:  core.PersistentVolumeClaims().Lister(),
		tell:    tell,
		changed: make(chan struct{}),
		told:    map[string]string{},
	}
	for _, informer := range []cache.SharedInformer{core.PersistentVolumes().Informer(), core.PersistentVolumeClaims().Informer()} {
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

// handler returns what is called with every change.
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

// note tells what an object has become, if that is new, and wakes those who wait.
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
	if o.told[event.Object] != event.What {
		o.told[event.Object] = event.What
		o.tell(event)
	}
}

// await waits until holds says so; what completes "wait until". The error is why
// ctx ended.
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

// volume returns the volume with the name, nil if there is none.
func (o *objects) volume(name string) *v1.PersistentVolume {
	volume, err := o.volumes.Get(name)
	if err != nil { // a lister has no other error than "not found"
		return nil
	}
	return volume
}

// claim returns the claim of the demo's namespace with the name, nil if there is
// none.
func (o *objects) claim(name string) *v1.PersistentVolumeClaim {
	claim, err := o.claims.PersistentVolumeClaims(namespace).Get(name)
	if err != nil {
		return nil
	}
	return claim
}
