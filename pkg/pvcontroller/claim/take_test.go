package claim

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/migration"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/metrics"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/pvcache"
)

// emptyController returns a controller with empty caches and an API server that does not
// exist.
func emptyController(t *testing.T) *Controller {
	t.Helper()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	caches, err := pvcache.New(informers.NewSharedInformerFactory(client, 0))
	if err != nil {
		t.Fatal(err)
	}
	return New(Config{
		Client: client, Caches: caches, Versions: controller.NewVersions(), InTree: &handedOver{},
		Operations: metrics.NewOperations(),
		Observer:   &Observer{Caches: caches, Provisioners: intree.NewSet(migration.New())},
	})
}

func free(name, version string, change ...func(*v1.PersistentVolume)) *v1.PersistentVolume {
	volume := &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), ResourceVersion: version},
		Spec: v1.PersistentVolumeSpec{
			Capacity:    v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")},
			AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
		},
		Status: v1.PersistentVolumeStatus{Phase: v1.VolumeAvailable},
	}
	for _, f := range change {
		f(volume)
	}
	return volume
}

func newClaim() *v1.PersistentVolumeClaim {
	return &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "claim", UID: "claim"},
		Spec: v1.PersistentVolumeClaimSpec{
			AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
			Resources:   v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

func TestVolumeChangedInCacheIsNotTaken(t *testing.T) {
	for name, change := range map[string]func(*v1.PersistentVolume){
		"claimed":       func(v *v1.PersistentVolume) { v.Spec.ClaimRef = &v1.ObjectReference{Namespace: "ns", Name: "other"} },
		"being deleted": func(v *v1.PersistentVolume) { v.DeletionTimestamp = &metav1.Time{} },
		"another class": func(v *v1.PersistentVolume) { v.Spec.StorageClassName = "other" },
		"too small": func(v *v1.PersistentVolume) {
			v.Spec.Capacity = v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Mi")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := emptyController(t)
			c.index.Update(free("v", "1")) // the event of the change is late
			if err := c.Caches.Volumes.GetStore().Add(free("v", "2", change)); err != nil {
				t.Fatal(err)
			}
			if volume, err := c.takeVolume(newClaim()); err != nil || volume != nil {
				t.Fatalf("took %v, %v", volume, err)
			}
			expectWaiting(t, c)
		})
	}
}

func TestVolumeMissingInCacheIsNotTaken(t *testing.T) {
	c := emptyController(t)
	c.index.Update(free("v", "1"))
	if volume, err := c.takeVolume(newClaim()); err != nil || volume != nil {
		t.Fatalf("took %v, %v", volume, err)
	}
	expectWaiting(t, c)
}

func TestLateEventDoesNotChangeIndex(t *testing.T) {
	c := emptyController(t)
	bound := free("v", "2", func(v *v1.PersistentVolume) { v.Spec.ClaimRef = &v1.ObjectReference{Namespace: "ns", Name: "other"} })
	if err := c.Caches.Volumes.GetStore().Add(bound); err != nil {
		t.Fatal(err)
	}
	c.volumeChanged(nil, free("v", "1"))
	if volumes, _ := c.index.Len(); volumes != 0 {
		t.Error("a claimed volume is free in the index")
	}
}

// interrupted is an informer whose store calls a function after it read an object, before it returns the object.
type interrupted struct {
	cache.SharedIndexInformer
	cache.Store
	then func()
}

func (i *interrupted) GetStore() cache.Store { return i }

func (i *interrupted) GetByKey(key string) (any, bool, error) {
	object, found, err := i.SharedIndexInformer.GetStore().GetByKey(key)
	if then := i.then; then != nil {
		i.then = nil
		then()
	}
	return object, found, err
}

// RecyclerEnded is called by another goroutine than that of volume events.
func TestLateReaderDoesNotChangeIndex(t *testing.T) {
	c := emptyController(t)
	store, informer := c.Caches.Volumes.GetStore(), &interrupted{SharedIndexInformer: c.Caches.Volumes,
		Store: c.Caches.Volumes.GetStore()}
	c.Caches.Volumes = informer
	released := free("v", "1", func(v *v1.PersistentVolume) { v.Status.Phase = v1.VolumeReleased })
	informer.then = func() { // RecyclerEnded has read the cache
		informer.then = func() {
			if err := store.Update(free("v", "2")); err != nil {
				t.Error(err)
			}
			c.volumeChanged(released, free("v", "2"))
		}
	}
	if err := store.Add(released); err != nil {
		t.Fatal(err)
	}
	c.RecyclerEnded("v")
	if volumes, _ := c.index.Len(); volumes != 1 {
		t.Error("the free volume is missing in the index")
	}
}

// expectWaiting checks that the claim waits and that the next free volume enqueues it.
func expectWaiting(t *testing.T, c *Controller) {
	t.Helper()
	if _, waiting := c.index.Len(); waiting != 1 {
		t.Fatalf("%d claims wait, want one", waiting)
	}
	c.index.Update(free("w", "3"))
	if _, waiting := c.index.Len(); waiting != 0 {
		t.Error("a volume that fits did not enqueue the claim")
	}
}
