package controller

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// kept lets the objects through that a cache is to keep. To the cache, an object that
// is no longer among them is deleted, and one that comes to be among them is added.
// Deletions all pass: somebody may wait for the name of an object to be free.
type kept struct {
	keep func(object runtime.Object) bool

	mu    sync.Mutex
	known map[cache.ObjectName]bool
	// listed is the version of the last list, "" while one is under way.
	listed string
}

// Kept lists and watches what is to be kept of a source. The source needs the
// functions that take a context. The client says whether its watches can begin with
// a list.
//
// Streamed says of a version that has reached the cache whether it came by a watch:
// then the cache has seen the write itself, and if the object is new to it, the one
// that made it one to be kept.
func Kept(source *cache.ListWatch, client any, keep func(object runtime.Object) bool) (kept cache.ListerWatcher, streamed func(version string) bool) {
	k := newKept(keep)
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			if options.Continue == "" {
				k.forget()
			}
			list, err := source.ListWithContextFunc(ctx, options)
			if err != nil {
				return nil, err
			}
			return list, k.trim(list)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if options.SendInitialEvents != nil && *options.SendInitialEvents {
				k.forget()
			}
			watched, err := source.WatchFuncWithContext(ctx, options)
			if err != nil {
				return nil, err
			}
			return k.filter(watched), nil
		},
	}, client), k.streamed
}

func newKept(keep func(object runtime.Object) bool) *kept {
	return &kept{keep: keep, known: map[cache.ObjectName]bool{}}
}

func (k *kept) streamed(version string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	order, err := resourceversion.CompareResourceVersion(version, k.listed)
	return err == nil && order > 0
}

// complete takes note of the version of a list that has come to its end.
func (k *kept) complete(version string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.listed = version
}

// forget begins anew: a list replaces what the cache has.
func (k *kept) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known, k.listed = map[cache.ObjectName]bool{}, ""
}

// trim takes out of a list what is not to be kept.
func (k *kept) trim(list runtime.Object) error {
	objects, err := meta.ExtractList(list)
	if err != nil {
		return fmt.Errorf("read list: %w", err)
	}
	var remain []runtime.Object
	for _, object := range objects {
		if _, passes := k.pass(watch.Event{Type: watch.Added, Object: object}); passes {
			remain = append(remain, object)
		}
	}
	if err := meta.SetList(list, remain); err != nil {
		return fmt.Errorf("trim list: %w", err)
	}
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return fmt.Errorf("read version of list: %w", err)
	}
	if accessor.GetContinue() == "" {
		k.complete(accessor.GetResourceVersion())
	}
	return nil
}

// pass returns the event as the cache is to see it, and whether it is to.
func (k *kept) pass(event watch.Event) (watch.Event, bool) {
	object, ok := event.Object.(metav1.Object)
	if ok && event.Type == watch.Bookmark && object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
		k.complete(object.GetResourceVersion())
	}
	if !ok || event.Type == watch.Bookmark || event.Type == watch.Error {
		return event, true
	}
	name := cache.MetaObjectToName(object)
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case event.Type == watch.Deleted:
		delete(k.known, name)
	case k.keep(event.Object):
		k.known[name] = true
	case k.known[name]:
		delete(k.known, name)
		event.Type = watch.Deleted
	default:
		return event, false
	}
	return event, true
}

// filter passes on what a watch brings until either end stops.
func (k *kept) filter(source watch.Interface) watch.Interface {
	f := &filtered{source: source, result: make(chan watch.Event), stopped: make(chan struct{})}
	go func() {
		defer close(f.result)
		defer source.Stop()
		for event := range source.ResultChan() {
			passed, passes := k.pass(event)
			if !passes {
				continue
			}
			select {
			case f.result <- passed:
			case <-f.stopped:
				return
			}
		}
	}()
	return f
}

// filtered is a watch of which not all is passed on.
type filtered struct {
	source  watch.Interface
	result  chan watch.Event
	stopped chan struct{}
	once    sync.Once
}

// Stop ends the watch.
func (f *filtered) Stop() {
	f.once.Do(func() { close(f.stopped) })
	f.source.Stop()
}

// ResultChan brings what is passed on.
func (f *filtered) ResultChan() <-chan watch.Event { return f.result }
