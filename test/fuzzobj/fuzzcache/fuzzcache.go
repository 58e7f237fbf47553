// Package fuzzcache fills the caches of informers with generated objects, for fuzz targets.
package fuzzcache

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/pvcontroller/pvcache"
)

// Caches are informers that were not started. An informer may be nil.
type Caches struct {
	Claims, Volumes, Classes, Pods, Attachments cache.SharedIndexInformer
}

// New returns the caches of pv-controller, which were not started.
func New(f *testing.F, client kubernetes.Interface) (*pvcache.Caches, Caches) {
	f.Helper()
	caches, err := pvcache.New(informers.NewSharedInformerFactory(client, 0))
	if err != nil {
		f.Fatal(err)
	}
	return caches, Caches{Claims: caches.Claims, Volumes: caches.Volumes, Classes: caches.Classes, Pods: caches.Pods}
}

// Fill replaces the content of the caches by the objects. The returned function wants the
// objects to be unchanged.
func (c Caches) Fill(t *testing.T, objects []runtime.Object) (expectUnchanged func()) {
	t.Helper()
	lists := map[cache.SharedIndexInformer][]any{c.Claims: nil, c.Volumes: nil, c.Classes: nil, c.Pods: nil,
		c.Attachments: nil}
	var before []runtime.Object
	for _, object := range objects {
		informer := c.of(object)
		lists[informer] = append(lists[informer], object)
		before = append(before, object.DeepCopyObject())
	}
	delete(lists, nil)
	for informer, list := range lists {
		if err := informer.GetStore().Replace(list, ""); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		t.Helper()
		if diff := cmp.Diff(before, objects); diff != "" {
			t.Errorf("objects of the caches were changed:\n%s", diff)
		}
	}
}

func (c Caches) of(object runtime.Object) cache.SharedIndexInformer {
	switch object.(type) {
	case *v1.PersistentVolumeClaim:
		return c.Claims
	case *v1.PersistentVolume:
		return c.Volumes
	case *storagev1.StorageClass:
		return c.Classes
	case *storagev1.VolumeAttachment:
		return c.Attachments
	}
	return c.Pods
}
