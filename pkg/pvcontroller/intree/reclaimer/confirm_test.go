package reclaimer

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// TestRetainCountsUntilPluginDeletes changes the volume while its claim is read.
func TestRetainCountsUntilPluginDeletes(t *testing.T) {
	for name, change := range map[string]func(*v1.PersistentVolume){
		"policy becomes Retain":          func(v *v1.PersistentVolume) { v.Spec.PersistentVolumeReclaimPolicy = v1.PersistentVolumeReclaimRetain },
		"another claim takes the volume": func(v *v1.PersistentVolume) { v.Spec.ClaimRef.Name, v.Spec.ClaimRef.UID = "next", "next" },
	} {
		t.Run(name, func(t *testing.T) {
			next := &v1.PersistentVolumeClaim{}
			next.Name, next.UID, next.Spec.VolumeName = "next", "next", "v"
			volume := releasedVolume(v1.PersistentVolumeReclaimDelete)
			next.Namespace = volume.Spec.ClaimRef.Namespace
			s := newFixture(t, volume, next)
			changed := volume.DeepCopy()
			change(changed)
			client := s.Client.(*fake.Clientset)
			client.PrependReactor("get", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
				return false, nil, client.Tracker().Update(v1.SchemeGroupVersion.WithResource("persistentvolumes"), changed, "")
			})
			s.must(s.Reconcile(t.Context(), "v"))
			if s.plugin.calls.Load() != 0 {
				t.Error("the plugin was called")
			}
		})
	}
}
