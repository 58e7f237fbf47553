package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// view is what exists now, seen through a connection without faults, and what existed before.
type view struct {
	mu      sync.Mutex
	volumes map[string]*v1.PersistentVolume
	claims  map[string]*v1.PersistentVolumeClaim
	pods    map[string]*v1.Pod
	// leases are only recorded.
	leases map[string]*coordinationv1.Lease
	// changed is closed with the next change.
	changed chan struct{}
	history *history
	record  *recorder

	// byHandle names the PersistentVolume of a handle, also once it is gone.
	byHandle map[string]string
	// deletable is when a handle last had the policy Delete.
	deletable map[string]time.Time
	// claimUIDs has the claims that exist, by UID.
	claimUIDs map[types.UID]string
	stop      func()
	// gaps are the times without watches. gapSince is the start of the current one, zero
	// while the watches are up.
	gaps     []gap
	gapSince time.Time
}

func newView(record *recorder) *view {
	return &view{
		volumes: map[string]*v1.PersistentVolume{}, claims: map[string]*v1.PersistentVolumeClaim{},
		pods: map[string]*v1.Pod{}, leases: map[string]*coordinationv1.Lease{},
		changed: make(chan struct{}), history: newHistory(), record: record,
		byHandle: map[string]string{}, deletable: map[string]time.Time{}, claimUIDs: map[types.UID]string{},
	}
}

// connect watches the API server from its current state on. Objects that are gone meanwhile
// are forgotten.
func (v *view) connect(ctx context.Context, client kubernetes.Interface) error {
	v.disconnect()
	ctx, cancel := context.WithCancel(ctx)
	factory := informers.NewSharedInformerFactory(client, 0)
	core := factory.Core().V1()
	kinds := map[string]cache.SharedIndexInformer{
		"pv": core.PersistentVolumes().Informer(), "claim": core.PersistentVolumeClaims().Informer(),
		"pod":   core.Pods().Informer(),
		"lease": factory.Coordination().V1().Leases().Informer(),
	}
	for kind, informer := range kinds {
		if _, err := informer.AddEventHandler(v.handler(kind)); err != nil {
			cancel()
			return fmt.Errorf("watch %s: %w", kind, err)
		}
	}
	began := time.Now()
	factory.Start(ctx.Done())
	v.stop = func() { cancel(); factory.Shutdown() }
	for kind, informer := range kinds {
		if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			return fmt.Errorf("list %s: %w", kind, context.Cause(ctx))
		}
		version := informer.LastSyncResourceVersion()
		v.record.listed(began, version)
		v.forgetOthers(kind, informer.GetStore(), version)
	}
	v.endGap()
	return nil
}

// disconnect ends the watches.
func (v *view) disconnect() {
	if v.stop == nil {
		return
	}
	v.mu.Lock()
	v.gapSince = time.Now()
	v.mu.Unlock()
	v.stop()
	v.stop = nil
}

// gap is a time in which versions may be missing or late.
type gap struct{ from, to time.Time }

// endGap records the time without watches. Events shortly before it may be missing, those
// shortly after it late.
func (v *view) endGap() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.gapSince.IsZero() {
		return
	}
	ended := gap{v.gapSince.Add(-settle), time.Now().Add(settle)}
	v.gaps, v.gapSince = append(v.gaps, ended), time.Time{}
	v.record.unobserved(ended.from, ended.to)
}

// isObserved reports whether all versions of the time are known. It is called with the lock
// held.
func (v *view) isObserved(from, to time.Time) bool {
	return !slices.ContainsFunc(v.gaps, func(g gap) bool { return !g.from.After(to) && !g.to.Before(from) })
}

// isConnected reports whether the watches are up.
func (v *view) isConnected() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.gapSince.IsZero()
}

// handler records the changes of a kind.
func (v *view) handler(kind string) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { v.record.observe(object, false); v.put(kind, object) },
		UpdateFunc: func(_, object any) { v.record.observe(object, false); v.put(kind, object) },
		DeleteFunc: func(object any) {
			if tombstone, is := object.(cache.DeletedFinalStateUnknown); is {
				object = tombstone.Obj
			} else {
				v.record.observe(object, true)
			}
			v.remove(kind, object)
		},
	}
}

// put records a version of an object.
func (v *view) put(kind string, object any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch o := object.(type) {
	case *coordinationv1.Lease:
		v.leases[o.Namespace+"/"+o.Name] = o
		return
	case *v1.PersistentVolume:
		v.volumes[o.Name] = o
		v.noteVolume(o)
	case *v1.PersistentVolumeClaim:
		if last := v.claims[o.Namespace+"/"+o.Name]; last != nil && last.UID != o.UID {
			delete(v.claimUIDs, last.UID) // its deletion was not watched
		}
		v.claims[o.Namespace+"/"+o.Name] = o
		v.claimUIDs[o.UID] = o.Namespace + "/" + o.Name
	case *v1.Pod:
		v.pods[o.Namespace+"/"+o.Name] = o
	}
	v.history.add(kind, object, false)
	v.wake()
}

// noteVolume remembers what is checked when the disk is deleted.
func (v *view) noteVolume(o *v1.PersistentVolume) {
	handle := handleOf(o)
	v.byHandle[handle] = o.Name
	if o.Spec.PersistentVolumeReclaimPolicy == v1.PersistentVolumeReclaimDelete {
		v.deletable[handle] = farFuture
	} else if v.deletable[handle].Equal(farFuture) {
		v.deletable[handle] = time.Now()
	}
}

// farFuture stands for a volume that has the policy Delete now.
var farFuture = time.Unix(1<<40, 0)

// remove records the end of an object.
func (v *view) remove(kind string, object any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch o := object.(type) {
	case *coordinationv1.Lease:
		delete(v.leases, o.Namespace+"/"+o.Name)
		return
	case *v1.PersistentVolume:
		delete(v.volumes, o.Name)
	case *v1.PersistentVolumeClaim:
		delete(v.claims, o.Namespace+"/"+o.Name)
		delete(v.claimUIDs, o.UID)
	case *v1.Pod:
		delete(v.pods, o.Namespace+"/"+o.Name)
	}
	v.history.add(kind, object, true)
	v.wake()
}

// forgetOthers removes the objects that the store, as of the version, does not have.
func (v *view) forgetOthers(kind string, store cache.Store, version string) {
	var gone []any
	v.mu.Lock()
	for _, object := range v.ofKind(kind) {
		if _, exists, err := store.Get(object); err == nil && !exists {
			gone = append(gone, object)
		}
	}
	v.mu.Unlock()
	for _, object := range gone {
		v.record.vanished(object, version)
		v.remove(kind, object)
	}
}

// ofKind returns all objects of a kind.
func (v *view) ofKind(kind string) []metav1.Object {
	var all []metav1.Object
	switch kind {
	case "pv":
		for _, o := range v.volumes {
			all = append(all, o)
		}
	case "claim":
		for _, o := range v.claims {
			all = append(all, o)
		}
	case "pod":
		for _, o := range v.pods {
			all = append(all, o)
		}
	case "lease":
		for _, o := range v.leases {
			all = append(all, o)
		}
	}
	return all
}

// wake ends the waits for a change.
func (v *view) wake() {
	close(v.changed)
	v.changed = make(chan struct{})
}

// await waits until the condition holds, which is called with the lock held.
func (v *view) await(ctx context.Context, holds func() bool) error {
	for {
		v.mu.Lock()
		met, changed := holds(), v.changed
		v.mu.Unlock()
		if met {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// volume returns the PersistentVolume, nil for none.
func (v *view) volume(name string) *v1.PersistentVolume {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.volumes[name]
}

// claim returns the claim, nil for none.
func (v *view) claim(key string) *v1.PersistentVolumeClaim {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.claims[key]
}

// handleOf returns the handle of a CSI volume.
func handleOf(volume *v1.PersistentVolume) string {
	if volume.Spec.CSI == nil {
		return ""
	}
	return volume.Spec.CSI.VolumeHandle
}
