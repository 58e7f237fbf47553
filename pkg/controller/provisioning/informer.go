package provisioning

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
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
func NewVolumes(informer cache.SharedIndexInformer, honor bool) *Volumes {
	const remembered = time.Minute // far longer than a watch event takes
	return &Volumes{
		SharedIndexInformer: informer,
		honor:               honor,
		store:               &store{Store: informer.GetStore(), made: cache.NewTTLStore(cache.MetaNamespaceKeyFunc, remembered)},
	}
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

// Poke has the library look at a volume again.
func (v *Volumes) Poke(volume *v1.PersistentVolume) {
	if v.handler != nil {
		v.handler.OnUpdate(volume, volume)
	}
}

// store is the cache, and beside it what the library has just created.
type store struct {
	cache.Store
	made cache.Store
}

// Add remembers a volume until the watch brings it.
func (s *store) Add(object any) error { return s.made.Add(object) }

// Update does nothing: the watch brings every change.
func (s *store) Update(any) error { return nil }

// GetByKey prefers what the watch has brought.
func (s *store) GetByKey(key string) (item any, exists bool, err error) {
	if item, exists, err = s.Store.GetByKey(key); exists || err != nil {
		return item, exists, err
	}
	return s.made.GetByKey(key)
}
