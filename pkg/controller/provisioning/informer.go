package provisioning

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// Volumes is the informer of volumes as the library gets it. With Honor it calls
// none of the library's handlers, so that only pkg/controller/deletion acts on
// volumes; and it keeps the objects that the library adds by itself, which have
// neither UID nor version, out of the cache that everybody reads.
type Volumes struct {
	cache.SharedIndexInformer
	honor   bool
	handler cache.ResourceEventHandler
	store   *store
}

// NewVolumes wraps the informer for the library.
func NewVolumes(informer cache.SharedIndexInformer, honor bool) (*Volumes, error) {
	made := cache.NewStore(cache.MetaNamespaceKeyFunc)
	seen := func(volume *v1.PersistentVolume) { _ = made.Delete(volume) } // a store in memory does not fail
	handler := controller.OnChange(func(_, volume *v1.PersistentVolume) { seen(volume) }, seen)
	if _, err := informer.AddEventHandler(handler); err != nil {
		return nil, fmt.Errorf("add handler: %w", err)
	}
	return &Volumes{SharedIndexInformer: informer, honor: honor, store: &store{Store: informer.GetStore(), made: made}}, nil
}

// AddEventHandlerWithResyncPeriod takes the library's handler.
func (v *Volumes) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler, resync time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	if v.honor {
		return nil, nil
	}
	v.handler = handler
	return v.SharedIndexInformer.AddEventHandlerWithResyncPeriod(handler, resync)
}

// GetStore returns a store of which the library's own additions are part.
func (v *Volumes) GetStore() cache.Store { return v.store }

// Requeue has the library look at a volume again.
func (v *Volumes) Requeue(volume *v1.PersistentVolume) {
	if v.handler != nil {
		v.handler.OnUpdate(volume, volume)
	}
}

// store is the cache, and beside it what the library has just created.
type store struct {
	cache.Store
	made cache.Store
}

// Add remembers a volume until the watch brings it. The cache is filled before
// its handlers run: either it is there already, or a handler will forget it.
func (s *store) Add(object any) error {
	if _, seen, err := s.Get(object); seen || err != nil {
		return err
	}
	return s.made.Add(object)
}

// Update does nothing: the watch brings every change.
func (s *store) Update(any) error { return nil }

// GetByKey prefers what the watch has brought.
func (s *store) GetByKey(key string) (item any, exists bool, err error) {
	if item, exists, err = s.Store.GetByKey(key); exists || err != nil {
		return item, exists, err
	}
	return s.made.GetByKey(key)
}
