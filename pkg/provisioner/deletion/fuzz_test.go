package deletion

import (
	"context"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller/metrics"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/provisioner/csibackend"
	"github.com/exeunt-io/exeunt/test/fuzzobj"
)

// shredder is a driver that records the handles it deletes.
type shredder struct{ deleted []string }

func (*shredder) Name() string { return fuzzobj.Driver }

func (s *shredder) DeleteVolume(_ context.Context, handle string, _ map[string]string) error {
	s.deleted = append(s.deleted, handle)
	return nil
}

// Volume translates an in-tree volume; the handle is the name of the volume.
func (*shredder) Volume(volume *v1.PersistentVolume) (*v1.PersistentVolume, error) {
	volume = volume.DeepCopy()
	volume.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: fuzzobj.Driver, VolumeHandle: volume.Name}
	return volume, nil
}

// Disk returns no disk.
func (*shredder) Disk(*v1.PersistentVolume) string { return "" }

// Whatever a cache says, the driver deletes a volume only if the API server has the volume
// with policy Delete, as Released or Failed, and without its claim.
func FuzzStaleCacheDeletesNoData(f *testing.F) {
	fuzzobj.AddSeeds(f, 300, 500)
	f.Fuzz(func(t *testing.T, data []byte) {
		d := fuzzobj.New(data)
		honor := d.Below(4) > 0
		truth := d.Objects()
		lies := truth
		if d.Below(3) > 0 {
			lies = d.Objects()
		}
		ripen(d, lies)
		client := fake.NewClientset(truth...)
		driver := &shredder{}
		cached := informers.NewSharedInformerFactory(client, 0).Core().V1().PersistentVolumes().Informer()
		c, err := New(Config{
			Client: client, Volumes: cached, Deleter: &csibackend.Deleter{Client: client, Driver: driver, Translator: driver},
			Honor:    honor,
			Reporter: controller.NewReporter(&record.FakeRecorder{}), Metrics: metrics.New("fuzz"),
			Locks:   &controller.KeyLocks{},
			Backoff: controller.Backoff{Initial: time.Second, Max: time.Second},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, volume := range volumesIn(lies) {
			if err := cached.GetStore().Add(volume.DeepCopy()); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range fuzzobj.Volumes {
			_ = c.Reconcile(t.Context(), name) // stale decisions may fail
		}
		expectDisposable(t, client, driver.deleted, volumesIn(truth))
	})
}

// ripen changes most volumes so that the cache calls for their deletion.
func ripen(d *fuzzobj.Choices, objects []runtime.Object) {
	for _, volume := range volumesIn(objects) {
		if d.Below(4) == 0 {
			continue
		}
		volume.Annotations, volume.DeletionTimestamp = nil, nil
		volume.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: fuzzobj.Driver, VolumeHandle: volume.Name}
		volume.Spec.PersistentVolumeReclaimPolicy, volume.Status.Phase = v1.PersistentVolumeReclaimDelete, v1.VolumeReleased
		volume.Spec.ClaimRef = &v1.ObjectReference{Namespace: fuzzobj.Namespace, Name: "p0", UID: "p0"}
	}
}

func volumesIn(objects []runtime.Object) []*v1.PersistentVolume {
	var volumes []*v1.PersistentVolume
	for _, object := range objects {
		if volume, ok := object.(*v1.PersistentVolume); ok {
			volumes = append(volumes, volume)
		}
	}
	return volumes
}

// expectDisposable wants every deleted handle to belong to a volume that was released, by
// the objects that the API server had before.
func expectDisposable(t *testing.T, client *fake.Clientset, deleted []string, truth []*v1.PersistentVolume) {
	t.Helper()
	for _, handle := range deleted {
		var owners []*v1.PersistentVolume
		for _, volume := range truth {
			csi := volume.Spec.CSI
			if csi == nil && volume.Name == handle || csi != nil && csi.Driver == fuzzobj.Driver && csi.VolumeHandle == handle {
				owners = append(owners, volume)
			}
		}
		if len(owners) != 1 {
			t.Errorf("%s was deleted, of which there are %d volumes", handle, len(owners))
			continue
		}
		volume := owners[0]
		released := volume.Status.Phase == v1.VolumeReleased || volume.Status.Phase == v1.VolumeFailed
		if !released || volume.Spec.PersistentVolumeReclaimPolicy != v1.PersistentVolumeReclaimDelete ||
			claimed(t, client, volume) {
			t.Errorf("%s was deleted, though phase is %s, policy %s, and its claim: %v",
				handle, volume.Status.Phase, volume.Spec.PersistentVolumeReclaimPolicy, claimed(t, client, volume))
		}
	}
}

// claimed reports whether the claim of the volume exists and may use the volume.
func claimed(t *testing.T, client *fake.Clientset, volume *v1.PersistentVolume) bool {
	t.Helper()
	ref := volume.Spec.ClaimRef
	if ref == nil || ref.UID == "" {
		return true // never bound, so not released
	}
	claims, err := client.CoreV1().PersistentVolumeClaims(ref.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, claim := range claims.Items {
		if claim.Namespace == ref.Namespace && claim.Name == ref.Name && claim.UID == ref.UID {
			return claim.Spec.VolumeName == "" || claim.Spec.VolumeName == volume.Name
		}
	}
	return false
}
