package volume

import (
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

// etcd is restored after the phase Released was written, before any watch shows the write. The caches are filled anew.
func TestVolumeWhoseReleaseWasLostIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bound := func(v *v1.PersistentVolume) { v.ResourceVersion, v.Status.Phase = "400", v1.VolumeBound }
		volume := releasedVolume(v1.PersistentVolumeReclaimRetain, bound)
		s, client := guarded(t, volume, nil)
		queue := s.Loops()[0].Step()
		s.Loops()[1].Step()
		s.reclaimer.Loops()[0].Step()
		client.PrependReactor("patch", "persistentvolumes", func(action clienttesting.Action) (bool, runtime.Object, error) {
			_, object, err := clienttesting.ObjectReaction(client.Tracker())(action)
			if err != nil {
				return true, nil, err
			}
			written := object.(*v1.PersistentVolume).DeepCopy()
			written.ResourceVersion = "900"
			return true, written, client.Tracker().Update(action.GetResource(), written, "")
		})
		phase := func() v1.PersistentVolumePhase {
			now, err := client.Tracker().Get(v1.SchemeGroupVersion.WithResource("persistentvolumes"), "", "v")
			s.must(err)
			return now.(*v1.PersistentVolume).Status.Phase
		}
		s.must(s.Reconcile(t.Context(), "v"))
		if phase() != v1.VolumeReleased {
			t.Fatal("not released")
		}
		s.must(client.Tracker().Update(v1.SchemeGroupVersion.WithResource("persistentvolumes"), volume, ""))
		s.updateCaches()
		s.volumeChanged(nil, s.Caches.Volume("v"))
		for range 3 {
			if due, later := queue.Keys(); len(due)+len(later) > 0 {
				queue.Reconcile(t.Context(), "v")
			}
			<-time.After(time.Minute)
		}
		if phase() != v1.VolumeReleased {
			t.Error("the volume stays Bound for ever, though its claim is gone")
		}
	})
}
