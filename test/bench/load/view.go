package load

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
)

// view is what watches reported of the claims in one namespace, and of the volumes that are
// made for them since. It begins empty.
type view struct {
	watched
	namespace string
	claims    map[string]*v1.PersistentVolumeClaim
	volumes   map[string]*v1.PersistentVolume
	bound     int // claims
	honored   int // volumes with the finalizer of their provisioner
}

// The watched resources.
const (
	claimResource  = "persistentvolumeclaims"
	volumeResource = "persistentvolumes"
)

// openView watches until ctx ends. There must be no claim in the namespace yet.
func openView(ctx context.Context, client kubernetes.Interface, namespace string) (*view, error) {
	list, err := client.CoreV1().PersistentVolumeClaims(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list claims: %w", err)
	}
	v := &view{
		watched:   newWatched(map[string]string{claimResource: list.ResourceVersion, volumeResource: list.ResourceVersion}),
		namespace: namespace, claims: map[string]*v1.PersistentVolumeClaim{}, volumes: map[string]*v1.PersistentVolume{},
	}
	watches := map[string]watchFunc{
		claimResource:  client.CoreV1().PersistentVolumeClaims(namespace).Watch,
		volumeResource: client.CoreV1().PersistentVolumes().Watch,
	}
	for resource, open := range watches {
		first, err := open(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
		if err != nil {
			return nil, fmt.Errorf("watch claims and volumes: %w", err)
		}
		go v.follow(ctx, first, resource, open, v.note)
	}
	return v, nil
}

// note takes in one event of a resource.
func (v *view) note(resource string, kind watch.EventType, object runtime.Object) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.advance(resource, object)
	switch found := object.(type) {
	case *v1.PersistentVolumeClaim:
		v.noteClaim(kind, found)
	case *v1.PersistentVolume:
		v.noteVolume(kind, found)
	}
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
	return v.watched.await(ctx, what, func() bool { return done(v) }, func() string {
		return fmt.Sprintf("there are %d claims, %d of them bound, and %d volumes", len(v.claims), v.bound, len(v.volumes))
	})
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
