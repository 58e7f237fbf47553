package volume

import (
	"maps"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/storage"
)

// Another component wrote annotations that the cache does not contain yet.
func TestAnnotationsMissingInCacheAreKept(t *testing.T) {
	volume := releasedVolume(v1.PersistentVolumeReclaimRetain, func(v *v1.PersistentVolume) {
		v.Annotations, v.Spec.ClaimRef = nil, nil
		v.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{GCEPersistentDisk: &v1.GCEPersistentDiskVolumeSource{PDName: "d"}}
		v.Status.Phase = v1.VolumeAvailable
	})
	s := newFixture(t, volume)
	live := volume.DeepCopy()
	live.Annotations = map[string]string{"backup.example.com/id": "precious"}
	live.ResourceVersion = "2"
	_, err := s.Client.CoreV1().PersistentVolumes().Update(t.Context(), live, metav1.UpdateOptions{})
	s.must(err)
	if err := s.Reconcile(t.Context(), "v"); err == nil {
		t.Error("the patch of an old version succeeded")
	}
	now, err := s.Client.CoreV1().PersistentVolumes().Get(t.Context(), "v", metav1.GetOptions{})
	s.must(err)
	if !maps.Equal(now.Annotations, live.Annotations) {
		t.Errorf("the annotations are %v, want %v", now.Annotations, live.Annotations)
	}
	s.updateCaches()
	s.must(s.Reconcile(t.Context(), "v"))
	s.updateCaches()
	if now := s.Caches.Volume("v"); now.Annotations["backup.example.com/id"] != "precious" ||
		now.Annotations[storage.AnnMigratedTo] == "" {
		t.Errorf("the annotations are %v", now.Annotations)
	}
}
