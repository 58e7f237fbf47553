package upstream

import (
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// volumeCache is the cache of the informer, with the objects that [OldSidecar] changed in it. The
// informer itself stays as the model filled it.
type volumeCache struct {
	informer cache.SharedIndexInformer

	mu      sync.Mutex
	changed map[string]changedVolume
}

// changedVolume replaces the version Over of a cached volume, "" for no volume.
type changedVolume struct {
	Over   string
	Volume *v1.PersistentVolume
}

func newVolumeCache(informer cache.SharedIndexInformer) *volumeCache {
	return &volumeCache{informer: informer, changed: map[string]changedVolume{}}
}

// get returns the cached volume, nil for none.
func (c *volumeCache) get(name string) *v1.PersistentVolume {
	cached := controller.Lookup[*v1.PersistentVolume](c.informer, name)
	c.mu.Lock()
	defer c.mu.Unlock()
	if replaced, known := c.changed[name]; known && replaced.Over == versionOf(cached) {
		return replaced.Volume
	}
	return cached
}

// replace puts the volume into the cache until the next event.
func (c *volumeCache) replace(volume *v1.PersistentVolume) {
	cached := controller.Lookup[*v1.PersistentVolume](c.informer, volume.Name)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed[volume.Name] = changedVolume{Over: versionOf(cached), Volume: volume}
}

// drop restores what the informer has, as its events do.
func (c *volumeCache) drop(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.changed, name)
}

func versionOf(volume *v1.PersistentVolume) string {
	if volume == nil {
		return ""
	}
	return volume.ResourceVersion
}
