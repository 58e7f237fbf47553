package load

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
)

// view is what watches reported of the claims in one namespace, and of the volumes that are
// made for them since. It begins empty.
type view struct {
	namespace string

	mu sync.Mutex
	// versions are the versions up to which the watches have come, by resource.
	versions map[string]string
	claims   map[string]*v1.PersistentVolumeClaim
	volumes  map[string]*v1.PersistentVolume
	bound    int // claims
	honored  int // volumes with the finalizer of their provisioner
	err      error
	// changed is closed and replaced by each event.
	changed chan struct{}
}

// watchFunc opens a watch from a version.
type watchFunc func(context.Context, metav1.ListOptions) (watch.Interface, error)

// The watched resources.
const (
	claimResource  = "persistentvolumeclaims"
	volumeResource = "persistentvolumes"
)

// openView watches until ctx ends. There must be no claim in the namespace yet.
func openView(ctx context.Context, client kubernetes.Interface, namespace string) (*view, error) {
	v := &view{
		namespace: namespace, claims: map[string]*v1.PersistentVolumeClaim{}, volumes: map[string]*v1.PersistentVolume{},
		changed: make(chan struct{}),
	}
	list, err := client.CoreV1().PersistentVolumeClaims(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list claims: %w", err)
	}
	v.versions = map[string]string{claimResource: list.ResourceVersion, volumeResource: list.ResourceVersion}
	watches := map[string]watchFunc{
		claimResource:  client.CoreV1().PersistentVolumeClaims(namespace).Watch,
		volumeResource: client.CoreV1().PersistentVolumes().Watch,
	}
	for resource, open := range watches {
		first, err := open(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
		if err != nil {
			return nil, fmt.Errorf("watch claims and volumes: %w", err)
		}
		go v.follow(ctx, first, resource, open)
	}
	return v, nil
}

// follow takes in events until ctx ends. A watch that ends is opened again.
func (v *view) follow(ctx context.Context, events watch.Interface, resource string, open watchFunc) {
	for {
		for event := range events.ResultChan() {
			if event.Type == watch.Error {
				v.fail(fmt.Errorf("watch claims and volumes: %v", event.Object))
				return
			}
			v.note(resource, event.Type, event.Object)
		}
		if ctx.Err() != nil {
			return
		}
		var err error
		if events, err = open(ctx, metav1.ListOptions{ResourceVersion: v.version(resource)}); err != nil {
			v.fail(fmt.Errorf("watch claims and volumes: %w", err))
			return
		}
	}
}

// version returns the version up to which the watch of a resource has come.
func (v *view) version(resource string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.versions[resource]
}

func (v *view) fail(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.err = err
	v.wake()
}

// wake lets await look again.
func (v *view) wake() {
	close(v.changed)
	v.changed = make(chan struct{})
}

// note takes in one event of a resource.
func (v *view) note(resource string, kind watch.EventType, object runtime.Object) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if accessor, err := meta.Accessor(object); err == nil {
		v.versions[resource] = accessor.GetResourceVersion()
	}
	switch found := object.(type) {
	case *v1.PersistentVolumeClaim:
		v.noteClaim(kind, found)
	case *v1.PersistentVolume:
		v.noteVolume(kind, found)
	}
	v.wake()
}

// noteVolume takes in an event of a volume, if it is for a claim in the namespace or its name
// begins with the namespace.
func (v *view) noteVolume(kind watch.EventType, volume *v1.PersistentVolume) {
	claim := volume.Spec.ClaimRef
	if (claim == nil || claim.Namespace != v.namespace) && !strings.HasPrefix(volume.Name, v.namespace+"-") {
		return
	}
	if old := v.volumes[volume.Name]; old != nil && finalizer.Has(old.Finalizers, finalizer.External) {
		v.honored--
	}
	if kind == watch.Deleted {
		delete(v.volumes, volume.Name)
		return
	}
	if v.volumes[volume.Name] = volume; finalizer.Has(volume.Finalizers, finalizer.External) {
		v.honored++
	}
}

// noteClaim takes in an event of a claim.
func (v *view) noteClaim(kind watch.EventType, claim *v1.PersistentVolumeClaim) {
	if v.isBound(claim.Name) {
		v.bound--
	}
	if kind == watch.Deleted {
		delete(v.claims, claim.Name)
		return
	}
	if v.claims[claim.Name] = claim; claim.Status.Phase == v1.ClaimBound {
		v.bound++
	}
}

// await waits until done is true of the view.
func (v *view) await(ctx context.Context, what string, done func(*view) bool) error {
	for {
		v.mu.Lock()
		changed, ready, err := v.changed, done(v), v.err
		v.mu.Unlock()
		if ready || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait until %s: %w: %s", what, context.Cause(ctx), v.summary())
		}
	}
}

// summary says what exists.
func (v *view) summary() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return fmt.Sprintf("there are %d claims, %d of them bound, and %d volumes", len(v.claims), v.bound, len(v.volumes))
}

// awaitBound waits until that many claims are bound.
func (v *view) awaitBound(ctx context.Context, count int) error {
	return v.await(ctx, fmt.Sprintf("%d claims are bound", count), func(v *view) bool { return v.bound >= count })
}

// awaitGone waits until no claim and no volume is left.
func (v *view) awaitGone(ctx context.Context) error {
	return v.await(ctx, "claims and volumes are gone", func(v *view) bool { return len(v.claims)+len(v.volumes) == 0 })
}

// isBound reports whether a claim is bound. The caller has the lock.
func (v *view) isBound(claim string) bool {
	return v.claims[claim] != nil && v.claims[claim].Status.Phase == v1.ClaimBound
}

// volumeOf returns the volume of a claim, "" for none.
func (v *view) volumeOf(claim string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if found := v.claims[claim]; found != nil {
		return found.Spec.VolumeName
	}
	return ""
}

// left returns the names of the claims and volumes that exist.
func (v *view) left() (claims, volumes []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Collect(maps.Keys(v.claims)), slices.Collect(maps.Keys(v.volumes))
}
