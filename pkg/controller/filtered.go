package controller

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// NewFilteredListWatch lists and watches only the objects for which keep returns true. An
// update after which keep returns true adds the object to the cache; an update after which
// keep returns false deletes the object from the cache. The source must have the functions
// with a context. The type of client says whether streaming lists are supported.
//
// cameByWatch reports whether an object with the resource version reached the cache as a
// watch event: then the cache saw the write after which keep returned true.
func NewFilteredListWatch(source *cache.ListWatch, client any,
	keep func(object runtime.Object) bool) (filtered cache.ListerWatcher, cameByWatch func(version string) bool) {
	f := newFilter(keep)
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			if options.Continue == "" {
				f.reset()
			}
			list, err := source.ListWithContextFunc(ctx, options)
			if err != nil {
				return nil, err
			}
			return list, f.filterList(list)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if options.SendInitialEvents != nil && *options.SendInitialEvents {
				f.reset()
			}
			watched, err := source.WatchFuncWithContext(ctx, options)
			if err != nil {
				return nil, err
			}
			return f.filterWatch(watched, beginsWithObjects(options)), nil
		},
	}, client), f.cameByWatch
}

// filter remembers which objects are in the cache. It passes on every deletion, also
// of objects that were never accepted: a loop may wait until their name is free.
type filter struct {
	keep func(object runtime.Object) bool

	mu     sync.Mutex
	cached map[cache.ObjectName]bool
	// listVersion is the resource version of the last list, "" until a list is complete.
	listVersion string
}

func newFilter(keep func(object runtime.Object) bool) *filter {
	return &filter{keep: keep, cached: map[cache.ObjectName]bool{}}
}

func (f *filter) cameByWatch(version string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	order, err := resourceversion.CompareResourceVersion(version, f.listVersion)
	return err == nil && order > 0
}

func (f *filter) completeList(version string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listVersion = version
}

// reset empties the filter before a new list, which replaces the content of the cache.
func (f *filter) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cached, f.listVersion = map[cache.ObjectName]bool{}, ""
}

func (f *filter) filterList(list runtime.Object) error {
	objects, err := meta.ExtractList(list)
	if err != nil {
		return fmt.Errorf("read list: %w", err)
	}
	var accepted []runtime.Object
	for _, object := range objects {
		if _, pass := f.filterEvent(watch.Event{Type: watch.Added, Object: object}); pass {
			accepted = append(accepted, object)
		}
	}
	if err := meta.SetList(list, accepted); err != nil {
		return fmt.Errorf("filter list: %w", err)
	}
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return fmt.Errorf("read version of list: %w", err)
	}
	if accessor.GetContinue() == "" {
		f.completeList(accessor.GetResourceVersion())
	}
	return nil
}

// filterEvent returns the event for the cache, and false if the cache must not see it.
func (f *filter) filterEvent(event watch.Event) (watch.Event, bool) {
	object, ok := event.Object.(metav1.Object)
	if isEndOfObjects(event) {
		f.completeList(object.GetResourceVersion())
	}
	if !ok || event.Type == watch.Bookmark || event.Type == watch.Error {
		return event, true
	}
	name := cache.MetaObjectToName(object)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case event.Type == watch.Deleted:
		delete(f.cached, name)
	case f.keep(event.Object):
		f.cached[name] = true
	case f.cached[name]:
		delete(f.cached, name)
		event.Type = watch.Deleted
	default:
		return event, false
	}
	return event, true
}

// beginsWithObjects reports whether a watch begins with events about all objects, whose versions have no order.
func beginsWithObjects(options metav1.ListOptions) bool {
	return ptr.Deref(options.SendInitialEvents, false) || options.ResourceVersion == "" || options.ResourceVersion == "0"
}

// isEndOfObjects reports whether the event ends the events about all objects.
func isEndOfObjects(event watch.Event) bool {
	object, ok := event.Object.(metav1.Object)
	return ok && event.Type == watch.Bookmark && object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
}

// filterWatch passes events on until either end stops. If the last events of the source are dropped, a bookmark takes
// their place: the next watch begins after them, and a short watch is not taken for a broken one, which is
// followed by a list of all objects.
func (f *filter) filterWatch(source watch.Interface, beginsWithObjects bool) watch.Interface {
	w := &filteredWatch{source: source, result: make(chan watch.Event), stopped: make(chan struct{})}
	go func() {
		defer close(w.result)
		defer source.Stop()
		var dropped runtime.Object
		for event := range source.ResultChan() {
			beginsWithObjects = beginsWithObjects && !isEndOfObjects(event)
			filtered, pass := f.filterEvent(event)
			if dropped = event.Object; !pass {
				continue
			}
			if dropped = nil; !w.send(filtered) {
				return
			}
		}
		if bookmark, ok := bookmarkAt(dropped); ok && !beginsWithObjects {
			w.send(bookmark)
		}
	}()
	return w
}

// bookmarkAt returns a bookmark with the version of the object, and false for an object without a version.
func bookmarkAt(object runtime.Object) (watch.Event, bool) {
	from, ok := object.(metav1.Object)
	if !ok || from.GetResourceVersion() == "" {
		return watch.Event{}, false
	}
	empty := reflect.New(reflect.TypeOf(object).Elem()).Interface()
	to, isObject := empty.(metav1.Object)
	bookmark, isRuntime := empty.(runtime.Object)
	if !isObject || !isRuntime {
		return watch.Event{}, false
	}
	to.SetResourceVersion(from.GetResourceVersion())
	return watch.Event{Type: watch.Bookmark, Object: bookmark}, true
}

type filteredWatch struct {
	source  watch.Interface
	result  chan watch.Event
	stopped chan struct{}
	once    sync.Once
}

// send passes an event on, and reports whether the watch goes on.
func (w *filteredWatch) send(event watch.Event) bool {
	select {
	case w.result <- event:
		return true
	case <-w.stopped:
		return false
	}
}

// Stop ends the watch.
func (w *filteredWatch) Stop() {
	w.once.Do(func() { close(w.stopped) })
	w.source.Stop()
}

// ResultChan returns the filtered events.
func (w *filteredWatch) ResultChan() <-chan watch.Event { return w.result }
