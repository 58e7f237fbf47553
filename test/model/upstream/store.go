package upstream

import (
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// store keeps, beside the cache of the informer, the newest version of each object that the
// program read or wrote.
type store[T metav1.Object] struct {
	mu      sync.Mutex
	objects map[string]T
}

func newStore[T metav1.Object]() *store[T] {
	return &store[T]{objects: map[string]T{}}
}

// update stores the object, and returns false if the store has a newer version.
func (s *store[T]) update(object T) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := controller.Key(object)
	if old, known := s.objects[key]; known && version(old) > version(object) {
		return false
	}
	s.objects[key] = object
	return true
}

func (s *store[T]) get(key string) (T, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	object, found := s.objects[key]
	return object, found
}

// take removes the object from the store.
func (s *store[T]) take(key string) (T, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	object, found := s.objects[key]
	delete(s.objects, key)
	return object, found
}

// list returns the objects in the order of their keys.
func (s *store[T]) list() []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	objects := make([]T, 0, len(s.objects))
	for _, key := range slices.Sorted(maps.Keys(s.objects)) {
		objects = append(objects, s.objects[key])
	}
	return objects
}

// version returns the resource version as a number, 0 for an object that was never written.
func version(object metav1.Object) int64 {
	number, err := strconv.ParseInt(object.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0
	}
	return number
}

// list returns the cached objects in the order of their keys, none without an informer.
func list[T metav1.Object](informer cache.SharedIndexInformer) []T {
	if informer == nil {
		return nil
	}
	var objects []T
	for _, key := range slices.Sorted(slices.Values(informer.GetStore().ListKeys())) {
		if object, isT := controller.Lookup[any](informer, key).(T); isT {
			objects = append(objects, object)
		}
	}
	return objects
}

// resync enqueues the key of a cached object for the next resync of upstream.
func resync(loop *controller.Loop, informer cache.SharedIndexInformer, key string, period time.Duration) {
	if controller.Lookup[any](informer, key) != nil {
		loop.EnqueueAfter(key, period)
	}
}
