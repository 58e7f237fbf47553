package controller

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Versions records the newest resource version of each object that this process wrote,
// so that no reconciler acts on a stale cache. The watch event of the write enqueues the
// object again. Once the cache has seen the write, its record is dropped: a cache only moves
// forward, and after a restore of the server's data, which moves it back, the object is
// reconciled all the same. It is safe for concurrent use.
type Versions struct {
	mu      sync.Mutex
	written map[types.UID]string
}

// NewVersions returns an empty record.
func NewVersions() *Versions {
	return &Versions{written: map[types.UID]string{}}
}

// RecordWrite records the object that a write returned.
func (v *Versions) RecordWrite(object metav1.Object) {
	v.mu.Lock()
	defer v.mu.Unlock()
	uid := object.GetUID()
	if older(v.written[uid], object.GetResourceVersion()) {
		v.written[uid] = object.GetResourceVersion()
	}
}

// IsFresh returns whether the cached object is at least as new as the last own write. It is
// called with the object that the cache holds now.
func (v *Versions) IsFresh(cached metav1.Object) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	written, known := v.written[cached.GetUID()]
	if known && older(cached.GetResourceVersion(), written) {
		return false
	}
	delete(v.written, cached.GetUID())
	return true
}

// Forget drops the version of a deleted object.
func (v *Versions) Forget(uid types.UID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.written, uid)
}

// older returns whether version a precedes b, and true for versions that cannot be compared.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || order < 0
}
