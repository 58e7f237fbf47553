package main

import (
	"context"
	"fmt"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/record"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/pvcache"
)

// sizedVolumes returns many available volumes of class fast, of size(i, last) MiB each.
func sizedVolumes(size func(i, last int) int) []any {
	const count = 20000
	volumes := make([]any, count)
	for i := range volumes {
		name := fmt.Sprintf("v%05d", i)
		volumes[i] = &v1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), ResourceVersion: "5",
				Finalizers: []string{"kubernetes.io/pv-protection"}},
			Spec: v1.PersistentVolumeSpec{
				StorageClassName: "fast",
				AccessModes:      []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
				Capacity: v1.ResourceList{v1.ResourceStorage: *resource.NewQuantity(int64(size(i, count-1))<<20,
					resource.BinarySI)},
			},
			Status: v1.PersistentVolumeStatus{Phase: v1.VolumeAvailable},
		}
	}
	return volumes
}

// runControllers runs the controllers until the test ends.
func runControllers(t *testing.T, s *apiServer) {
	t.Helper()
	options := optionsFor(t, s)
	clients, err := options.Clients("pv-controller")
	if err != nil {
		t.Fatal(err)
	}
	factory := informers.NewSharedInformerFactory(clients.Objects, 0)
	caches, err := pvcache.New(factory)
	if err != nil {
		t.Fatal(err)
	}
	controllers, err := newControllers(options, clients, caches, controller.NewReporter(&record.FakeRecorder{}))
	if err != nil {
		t.Fatal(err)
	}
	controllers.term = controller.UnlimitedTerm()
	ctx, stop := context.WithCancel(t.Context())
	factory.StartWithContext(ctx)
	t.Cleanup(factory.Shutdown)
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	t.Cleanup(stop)
	if !clients.WaitForCacheSync(ctx, factory) {
		t.Fatal("the caches have not synced")
	}
	if err := controllers.Watch(ctx); err != nil {
		t.Fatal(err)
	}
	running.Go(func() { controllers.Run(ctx, options.claimWorkers, options.volumeWorkers) })
}

// The event handlers fill the index of available volumes after the caches have synced.
func TestFirstClaimGetsBestVolumeOfMany(t *testing.T) {
	class := "fast"
	claim := waitingClaim.DeepCopy()
	claim.Spec.StorageClassName = &class
	claim.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}
	claim.Spec.Resources.Requests = v1.ResourceList{v1.ResourceStorage: resource.MustParse("50Gi")}
	for name, size := range map[string]func(i, last int) int{
		"the last volume is the smallest that fits": func(i, last int) int { return 50<<10 + last - i },
		"only the last volume fits": func(i, last int) int {
			if i < last {
				return last - i
			}
			return 50 << 10
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newAPIServer(t, map[string][]any{
				"persistentvolumeclaims": {claim},
				"persistentvolumes":      sizedVolumes(size),
				"storageclasses":         {&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: "csi.example.com"}},
			})
			runControllers(t, s)
			if what, want := s.next(), "PATCH /api/v1/persistentvolumes/v19999"; what != want {
				t.Errorf("the first request is %s, want %s", what, want)
			}
		})
	}
}
