package controller

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/controller/partial"
)

// Versions records the newest resource version of each object that this process wrote,
// so that no reconciler acts on a stale cache. Once the cache has seen the write, its record is dropped: a cache only moves
// forward, and after a restore of the server's data, which moves it back, the object is
// reconciled all the same. It is safe for concurrent use.
type Versions struct {
	mu      sync.Mutex
	written map[types.UID]ownWrite
	lost    []func(object metav1.Object)
	// requeues enqueue the objects of overdue writes. checking: the timer runs.
	requeues []requeue
	checking bool
	repeats  Repeats
}

// ownWrite is the last own write of an object.
type ownWrite struct {
	version string
	// confirmed is when the API server had the write: when it answered, or when a read showed it.
	confirmed time.Time
	// key is the namespace/name. expected: the object will have another version than this, or none.
	key      string
	expected bool
}

// requeue enqueues objects of a cache.
type requeue struct {
	store   cache.Store
	enqueue func(key string)
}

// overdueWrite is how long a write may be without an event until its object is read.
const overdueWrite = time.Minute

// NewVersions returns an empty record.
func NewVersions() *Versions {
	return &Versions{written: map[types.UID]ownWrite{}}
}

// OnLost registers a function that is called with the cached object whose last own write is lost. All functions are
// registered before the first write.
func (v *Versions) OnLost(f func(object metav1.Object)) { v.lost = append(v.lost, f) }

// RecordWrite records the object that a write returned.
func (v *Versions) RecordWrite(object metav1.Object) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if last := v.written[object.GetUID()]; last.expected || older(last.version, object.GetResourceVersion()) {
		v.record(object, false)
	}
}

// ExpectChange records that the object of this version will change or vanish after a write of this process, even if that
// wrote another object. No reconciler waits for the event.
func (v *Versions) ExpectChange(object metav1.Object) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, awaited := v.written[object.GetUID()]; !awaited && len(v.requeues) > 0 {
		v.record(object, true)
	}
}

func (v *Versions) record(object metav1.Object, expected bool) {
	v.written[object.GetUID()] = ownWrite{version: object.GetResourceVersion(), confirmed: time.Now(), key: Key(object),
		expected: expected}
	v.checkLater()
}

// RequeueUnseen has enqueue called for each object of the cache whose own write has had no event for a minute or two, until
// the context ends: the pass that wrote may have been the last one, and if etcd was restored to the version that the cache
// shows, no event follows. It is called once for each cache.
func (v *Versions) RequeueUnseen(ctx context.Context, informer cache.SharedIndexInformer, enqueue func(key string)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.requeues = append(v.requeues, requeue{informer.GetStore(), enqueue})
	v.checkLater() // there may be writes
	context.AfterFunc(ctx, func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.requeues = nil
	})
}

// checkLater checks the writes once they are overdue.
func (v *Versions) checkLater() {
	if !v.checking && len(v.requeues) > 0 {
		v.checking = true
		time.AfterFunc(overdueWrite, v.check)
	}
}

// check enqueues the objects of overdue writes, as long as there are unseen writes.
func (v *Versions) check() {
	v.mu.Lock()
	requeues, written := v.requeues, maps.Clone(v.written)
	v.mu.Unlock()
	for uid, w := range written {
		if len(requeues) > 0 && time.Since(w.confirmed) >= overdueWrite {
			v.requeue(requeues, uid, w)
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.checking = false; len(v.written) > 0 {
		v.checkLater()
	}
}

// requeue enqueues an object if its cache does not show the write. A record that no pass will use is dropped.
func (v *Versions) requeue(requeues []requeue, uid types.UID, written ownWrite) {
	for _, r := range requeues {
		object, _, _ := r.store.GetByKey(written.key) // a store in memory does not fail
		cached, ok := object.(metav1.Object)
		switch {
		case !ok || cached.GetUID() != uid:
		case written.expected && cached.GetResourceVersion() != written.version &&
			!older(cached.GetResourceVersion(), written.version):
		case written.expected:
			r.enqueue(written.key)
		case !v.IsFresh(cached):
			r.enqueue(written.key)
			return
		}
	}
	v.drop(uid, written.version)
}

// IsFresh returns whether the cached object is at least as new as the last own write. It is
// called with the object that the cache holds now. A reconciler that cannot go on returns what
// [Versions.AwaitVolume], [Versions.AwaitClaim] or [AwaitWrite] returns.
func (v *Versions) IsFresh(cached metav1.Object) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	written, known := v.written[cached.GetUID()]
	switch {
	case written.expected:
	case known && older(cached.GetResourceVersion(), written.version):
		return false
	default:
		delete(v.written, cached.GetUID())
	}
	return true
}

// AwaitVolume is [AwaitWrite] for a volume.
func (v *Versions) AwaitVolume(ctx context.Context, client kubernetes.Interface, cached *v1.PersistentVolume) error {
	return AwaitWrite(ctx, v, cached, client.CoreV1().PersistentVolumes().Get)
}

// AwaitClaim is [AwaitWrite] for a claim.
func (v *Versions) AwaitClaim(ctx context.Context, client kubernetes.Interface,
	cached *v1.PersistentVolumeClaim) error {
	return AwaitWrite(ctx, v, cached, client.CoreV1().PersistentVolumeClaims(cached.Namespace).Get)
}

// AwaitWrite returns [ErrStaleCache] for a cached object that is not fresh. A write that was lost with a restore of etcd
// has no event: after [overdueWrite] the object is read, and a write that the API server does not have is forgotten.
func AwaitWrite[T metav1.Object](ctx context.Context, v *Versions, cached T,
	get func(context.Context, string, metav1.GetOptions) (T, error)) error {
	written := v.overdue(cached.GetUID())
	if written == "" {
		return ErrStaleCache
	}
	live, exists, err := answer.Get(ctx, cached.GetName(), get)
	switch {
	case err != nil:
		return fmt.Errorf("read %s, whose last write has had no event: %w", Key(cached), err)
	case exists && live.GetUID() == cached.GetUID() && older(live.GetResourceVersion(), written):
		v.lose(cached, written)
	default: // the watch is late
		v.confirm(cached.GetUID(), written)
	}
	return ErrStaleCache
}

// overdue returns the version of an own write whose event is overdue, "" if none is.
func (v *Versions) overdue(uid types.UID) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	written := v.written[uid]
	if time.Since(written.confirmed) < overdueWrite {
		return ""
	}
	return written.version
}

// confirm records that a read has shown the write, unless there is a later one.
func (v *Versions) confirm(uid types.UID, version string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if written := v.written[uid]; written.version == version {
		written.confirmed = time.Now()
		v.written[uid] = written
	}
}

// lose drops the record of a lost write, and tells so, unless there is a later one.
func (v *Versions) lose(cached metav1.Object, version string) {
	if !v.drop(cached.GetUID(), version) {
		return
	}
	for _, f := range v.lost {
		f(cached)
	}
}

// drop drops the record of a write, and reports false if there is a later one.
func (v *Versions) drop(uid types.UID, version string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	isLast := v.written[uid].version == version
	if isLast {
		delete(v.written, uid)
	}
	return isLast
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

// Key returns the namespace/name of an object.
func Key(object metav1.Object) string {
	return cache.MetaObjectToName(object).String()
}

// ClaimKey returns the namespace/name of the volume's claimRef, "" without one.
func ClaimKey(volume *v1.PersistentVolume) string {
	if volume.Spec.ClaimRef == nil {
		return ""
	}
	return volume.Spec.ClaimRef.Namespace + "/" + volume.Spec.ClaimRef.Name
}

// StripManagedFields is an informer transform that removes metadata.managedFields.
func StripManagedFields(object any) (any, error) {
	if accessor, ok := object.(metav1.Object); ok {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}

// TrimNode is an informer transform that keeps the name and the labels of a node.
func TrimNode(object any) (any, error) {
	node, ok := object.(*v1.Node)
	if !ok {
		return object, nil
	}
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion,
		Labels: node.Labels}}, nil
}

// NodeRule decodes what [TrimNode] keeps.
func NodeRule() partial.Rule {
	return partial.Rule{Fields: partial.Only(v1.Node{}, "metadata.name", "metadata.uid", "metadata.resourceVersion",
		"metadata.labels")}
}
