package reclaimer

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// removeClaimRef edits the volume as an administrator does.
func (s *fixture) removeClaimRef() {
	s.t.Helper()
	now, err := s.Client.CoreV1().PersistentVolumes().Get(s.t.Context(), "v", metav1.GetOptions{})
	s.must(err)
	now.Spec.ClaimRef = nil
	_, err = s.Client.CoreV1().PersistentVolumes().Update(s.t.Context(), now, metav1.UpdateOptions{})
	s.must(err)
	s.updateCaches()
}

// The finalizer is removed by force, and the object is gone before the plugin has deleted the data.
func TestVolumeThatIsGoneDuringItsDeletionIsForgotten(t *testing.T) {
	for name, failure := range map[string]error{"deleted": nil, "failed": errors.New("busy")} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, releasedVolume(v1.PersistentVolumeReclaimDelete))
			defer s.shutDown()
			volume := s.Caches.Volume("v")
			calls := 0
			s.plugin.delete = func(ctx context.Context) error {
				if calls++; calls > 1 {
					return errors.New("deleted twice")
				}
				s.must(s.Client.CoreV1().PersistentVolumes().Delete(ctx, "v", metav1.DeleteOptions{}))
				s.must(s.Caches.Volumes.GetStore().Delete(volume))
				s.volumeGone(volume)
				return failure
			}
			_ = s.Reconcile(t.Context(), "v")
			if left := s.memory.Get(volume.UID); !reflect.DeepEqual(left, progress{}) || calls != 1 {
				t.Errorf("%d calls, %+v is remembered", calls, left)
			}
		})
	}
}

// An administrator gives a volume away while its plugin deletes the data. Nobody gets the volume before the plugin
// has ended, and nobody gets one without data.
func TestVolumeIsKeptFromClaimsWhileItsDataIsDeleted(t *testing.T) {
	for name, failure := range map[string]error{"deleted": nil, "failed": errors.New("busy")} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, releasedVolume(v1.PersistentVolumeReclaimDelete))
			defer s.shutDown()
			var woken []string
			s.OnRecyclerEnded(func(volume string) { woken = append(woken, volume) })
			s.plugin.delete = func(ctx context.Context) error {
				s.removeClaimRef()
				s.must(s.phases.Reconcile(ctx, "v"))
				s.updateCaches()
				if phase := s.Caches.Volume("v").Status.Phase; phase != v1.VolumeReleased || len(woken) > 0 {
					t.Errorf("phase %s while the data is being deleted, woken %q", phase, woken)
				}
				return failure
			}
			_ = s.Reconcile(t.Context(), "v") // of an old version, if the plugin fails
			s.updateCaches()
			if !slices.Equal(woken, []string{"v"}) {
				t.Errorf("woken %q", woken)
			}
			_, err := s.Client.CoreV1().PersistentVolumes().Get(t.Context(), "v", metav1.GetOptions{})
			if failure == nil && !apierrors.IsNotFound(err) {
				t.Errorf("the object of a volume without data is left: %v", err)
			}
			if failure != nil && s.reclaim().Status.Phase != v1.VolumeAvailable {
				t.Error("a volume that the plugin did not delete is not given back")
			}
		})
	}
}

// The API server does not answer when the volume, whose data is gone, has just been given away.
func TestVolumeWithoutDataIsNotGivenAway(t *testing.T) {
	for _, verb := range []string{"get", "delete"} {
		t.Run(verb+" fails", func(t *testing.T) {
			s := newFixture(t, releasedVolume(v1.PersistentVolumeReclaimDelete))
			defer s.shutDown()
			failed := false
			s.plugin.delete = func(context.Context) error {
				s.removeClaimRef()
				s.Client.(*fake.Clientset).PrependReactor(verb, "persistentvolumes",
					func(clienttesting.Action) (bool, runtime.Object, error) {
						now := !failed
						failed = true
						return now, nil, errors.New("no answer")
					})
				return nil
			}
			if err := s.Reconcile(t.Context(), "v"); err == nil || !failed {
				t.Fatalf("Reconcile() = %v", err)
			}
			s.updateCaches()
			s.must(s.phases.Reconcile(t.Context(), "v"))
			s.updateCaches()
			if phase := s.Caches.Volume("v").Status.Phase; phase != v1.VolumeReleased {
				t.Errorf("phase %s of a volume without data", phase)
			}
			var woken []string
			s.OnRecyclerEnded(func(volume string) { woken = append(woken, volume) })
			s.must(s.Reconcile(t.Context(), "v"))
			if _, err := s.Client.CoreV1().PersistentVolumes().Get(t.Context(), "v",
				metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("the object of a volume without data is left: %v", err)
			}
			if calls := s.plugin.calls.Load(); calls != 1 || !slices.Equal(woken, []string{"v"}) {
				t.Errorf("the plugin was called %d times, woken %q", calls, woken)
			}
		})
	}
}

// The same, but nobody gave the volume away.
func TestDeletionGoesOnAfterFailedRead(t *testing.T) {
	s := newFixture(t, releasedVolume(v1.PersistentVolumeReclaimDelete))
	defer s.shutDown()
	s.plugin.delete = func(context.Context) error {
		failed := false
		s.Client.(*fake.Clientset).PrependReactor("get", "persistentvolumes",
			func(clienttesting.Action) (bool, runtime.Object, error) {
				now := !failed
				failed = true
				return now, nil, errors.New("no answer")
			})
		return nil
	}
	if err := s.Reconcile(t.Context(), "v"); err == nil {
		t.Fatal("no read failed")
	}
	for range 3 {
		if s.updateCaches(); s.Caches.Volume("v") != nil {
			s.reclaim()
		}
	}
	if calls := s.plugin.calls.Load(); calls != 1 || s.Caches.Volume("v") != nil {
		t.Errorf("the plugin was called %d times, volume %v", calls, s.Caches.Volume("v"))
	}
}

// An empty annotation names no provisioner: the volume goes as one that a person created.
func TestVolumeWithEmptyProvisionerGoes(t *testing.T) {
	claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "claim", UID: "c"},
		Spec: v1.PersistentVolumeClaimSpec{VolumeName: "else"}}
	s := newFixture(t, claim, releasedVolume(v1.PersistentVolumeReclaimDelete, func(v *v1.PersistentVolume) {
		v.Annotations[storage.AnnDynamicallyProvisioned] = ""
		v.Status.Phase = v1.VolumeBound
		v.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		v.Finalizers = []string{string(finalizer.VolumeProtection)}
	}))
	defer s.shutDown()
	s.must(s.Caches.Claims.GetStore().Add(claim))
	for range 3 {
		if volume := s.reclaim(); volume == nil || !finalizer.Has(volume.Finalizers, finalizer.VolumeProtection) {
			return
		}
	}
	t.Errorf("the volume is left: %+v", s.Caches.Volume("v").Status)
}

// Each node may have a local volume at the same path.
func TestGoneLocalVolumeWakesNoBoundVolume(t *testing.T) {
	objects := localVolumes(v1.VolumeBound)
	s := newFixture(t, objects...)
	queue := s.Loops()[0].Step()
	gone, _ := objects[0].(*v1.PersistentVolume)
	s.volumeGone(gone)
	if due, later := queue.Keys(); len(due)+len(later) > 0 {
		t.Errorf("%d volumes are woken", len(due)+len(later))
	}
}

// localVolumes returns volumes at the same path of different nodes.
func localVolumes(phase v1.PersistentVolumePhase) []runtime.Object {
	var objects []runtime.Object
	for i := range 50 {
		v := pinned(fmt.Sprint("v", i), fmt.Sprint("node", i))
		local(v)
		v.UID = v.UID + "-" + v.UID[:1]
		v.Status.Phase = phase
		objects = append(objects, v)
	}
	return objects
}

func TestReleasedLocalVolumeIsComparedWithNoOther(t *testing.T) {
	objects := localVolumes(v1.VolumeReleased)
	s := newFixture(t, objects...)
	queue := s.Loops()[0].Step()
	released, _ := objects[0].(*v1.PersistentVolume)
	s.Enqueue(released)
	s.must(s.Reconcile(t.Context(), released.Name))
	s.volumeGone(released)
	due, _ := queue.Keys()
	if s.plugin.compared.Load() > 0 || !slices.Equal(due, []string{released.Name}) {
		t.Errorf("%d comparisons, %q are woken", s.plugin.compared.Load(), due)
	}
}

// A queue keeps only the first of the times at which it shows a volume again.
func TestUnseenRecyclerPodIsLookedForAgain(t *testing.T) {
	volume := releasedVolume(v1.PersistentVolumeReclaimRecycle, static)
	s := newFixture(t, volume)
	queue := s.Loops()[0].Step()
	s.memory.Update(volume.UID, func(p *progress) { p.created.at = time.Now() })
	s.removeClaimRef()
	s.must(s.Reconcile(t.Context(), "v"))
	if _, later := queue.Keys(); !slices.Contains(later, "v") {
		t.Error("nothing wakes the volume once its recycler pod must have ended")
	}
}
