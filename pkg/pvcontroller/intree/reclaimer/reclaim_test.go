package reclaimer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
	"github.com/exeunt-io/exeunt/pkg/reclaim/plugin"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

func by(plugin string) func(*v1.PersistentVolume) {
	return func(v *v1.PersistentVolume) { v.Annotations[storage.AnnDynamicallyProvisioned] = plugin }
}

// Each case is the phase of a volume after its reclaim, and the event about the volume.
func TestReclaimSetsPhaseAndSendsEvent(t *testing.T) {
	deletes, recycles := v1.PersistentVolumeReclaimDelete, v1.PersistentVolumeReclaimRecycle
	for name, tc := range map[string]struct {
		volume *v1.PersistentVolume
		answer error
		phase  v1.PersistentVolumePhase // "" for a volume that is gone
		event  string
	}{
		"plugin deletes":       {releasedVolume(deletes), nil, "", ""},
		"plugin fails":         {releasedVolume(deletes), errors.New("disk on fire"), v1.VolumeFailed, "Warning VolumeFailedDelete: disk on fire"},
		"volume in use":        {releasedVolume(deletes), fmt.Errorf("disk 7: %w", intree.ErrInUse), v1.VolumeReleased, "Normal VolumeDelete: disk 7"},
		"no plugin":            {releasedVolume(deletes, by("kubernetes.io/rbd")), nil, v1.VolumeFailed, "Warning VolumeFailedDelete: no volume plugin matched"},
		"unknown policy":       {releasedVolume("Shred"), nil, v1.VolumeFailed, "Warning VolumeUnknownReclaimPolicy: "},
		"external provisioner": {releasedVolume(deletes, by("example.com")), nil, v1.VolumeReleased, ""},
		"policy Retain":        {releasedVolume(v1.PersistentVolumeReclaimRetain), nil, v1.VolumeReleased, ""},
		"no recycler": {releasedVolume(recycles, func(v *v1.PersistentVolume) { v.Spec.HostPath = nil }), nil,
			v1.VolumeFailed, "Warning VolumeFailedRecycle: No recycler plugin"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, tc.volume)
			s.plugin.delete = func(context.Context) error { return tc.answer }
			volume := s.reclaim()
			switch {
			case (volume == nil) != (tc.phase == ""):
				t.Fatalf("the volume is gone: %v", volume == nil)
			case volume != nil && volume.Status.Phase != tc.phase:
				t.Errorf("phase %s, want %s", volume.Status.Phase, tc.phase)
			case volume != nil && tc.phase == v1.VolumeFailed && volume.Status.Message == "":
				t.Error("the status does not say why")
			}
			if said := strings.Join(s.events.events, "; "); !strings.HasPrefix(said, tc.event) ||
				(said == "") != (tc.event == "") {
				t.Errorf("events %q, want %q", said, tc.event)
			}
		})
	}
}

// Nothing but the policy Retain would end the wait for a plugin that refuses the path.
func TestVolumeThatPluginRefusesCanBeDeleted(t *testing.T) {
	for path, protected := range map[string]bool{"/tmp/v": true, "/mnt/v": false} {
		t.Run(path, func(t *testing.T) {
			s := newFixture(t, releasedVolume(v1.PersistentVolumeReclaimDelete, static, func(v *v1.PersistentVolume) {
				v.Spec.HostPath.Path, v.DeletionTimestamp, v.Finalizers = path, &metav1.Time{Time: time.Unix(1, 0)},
					[]string{string(finalizer.VolumeProtection), "x"}
			}))
			s.plugin.HostPath = intree.HostPath{Root: "/tmp"}
			s.plugin.delete = func(context.Context) error { return errors.New("not deleted") }
			if volume := s.reclaim(); finalizer.Has(volume.Finalizers, finalizer.VolumeProtection) != protected {
				t.Errorf("finalizers %v, want pv-protection: %v", volume.Finalizers, protected)
			}
		})
	}
}

// The plugin left the translation library after its CSI driver had added the finalizer.
func TestVolumeOfRemovedPluginKeepsNoFinalizer(t *testing.T) {
	for name, deleting := range map[string]bool{"released": false, "released, being deleted": true} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, releasedVolume(v1.PersistentVolumeReclaimDelete, by("kubernetes.io/rbd"),
				func(v *v1.PersistentVolume) {
					v.Annotations[storage.AnnMigratedTo] = "rbd.csi.ceph.com"
					v.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{RBD: &v1.RBDPersistentVolumeSource{RBDImage: "image"}}
					v.Finalizers = []string{string(finalizer.VolumeProtection), string(finalizer.External)}
					if deleting {
						v.DeletionTimestamp = &metav1.Time{}
					}
				}))
			defer s.shutDown()
			volume := s.reclaim()
			if volume != nil && finalizer.Has(volume.Finalizers, finalizer.External) {
				t.Errorf("the volume is %s with finalizers %v", volume.Status.Phase, volume.Finalizers)
			}
		})
	}
}

func TestFailedPluginIsRetriedWithBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFixture(t, releasedVolume(v1.PersistentVolumeReclaimDelete))
		defer s.shutDown()
		start := time.Now()
		var tries []time.Duration
		s.plugin.delete = func(context.Context) error {
			if tries = append(tries, time.Since(start)); len(tries) < 4 {
				return fmt.Errorf("try %d failed", len(tries))
			}
			return nil
		}
		for volume := s.Caches.Volume("v"); volume != nil; volume = s.reclaim() {
			<-time.After(100 * time.Millisecond)
		}
		want := []time.Duration{100, 600, 1600, 3600}
		if len(tries) != len(want) {
			t.Fatalf("tried at %v, want at %v", tries, want)
		}
		for i := range want {
			if tries[i] != want[i]*time.Millisecond {
				t.Errorf("try %d at %v, want at %v", i, tries[i], want[i]*time.Millisecond)
			}
		}
	})
}

func TestBackoffHasMaximum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFixture(t)
		defer s.shutDown()
		for range 100 {
			s.backOff("u")
		}
		if wait := s.remainingBackoff("u"); wait != lastRetry {
			t.Errorf("after a hundred failures the next try waits %v, want %v", wait, lastRetry)
		}
	})
}

func TestVolumeIsDeletedOnceThoughWritesFail(t *testing.T) {
	s := newFixture(t, releasedVolume(v1.PersistentVolumeReclaimDelete, func(v *v1.PersistentVolume) {
		v.Finalizers = []string{string(finalizer.InTree), string(finalizer.VolumeProtection)}
	}))
	ctx, cancel := context.WithCancel(context.Background())
	s.plugin.delete = func(context.Context) error { cancel(); return nil } // whatever follows fails
	_ = s.Reconcile(ctx, "v")
	s.plugin.delete = func(context.Context) error { return errors.New("already deleted") }
	for range 3 {
		s.reclaim()
	}
	if s.plugin.calls.Load() != 1 {
		t.Errorf("the plugin was called %d times, want once", s.plugin.calls.Load())
	}
	if volume := s.Caches.Volume("v"); volume != nil && finalizer.Has(volume.Finalizers, finalizer.InTree) {
		t.Errorf("the volume still has %v", volume.Finalizers)
	}
}

// denyDeletion makes the API server refuse to delete PersistentVolumes while denied.
func (s *fixture) denyDeletion(denied *bool) {
	s.Client.(*fake.Clientset).PrependReactor("delete", "persistentvolumes",
		func(clienttesting.Action) (bool, runtime.Object, error) {
			return *denied, nil, errors.New("denied by an admission webhook")
		})
}

func TestDataOfNextClaimIsDeletedToo(t *testing.T) {
	s := newFixture(t, releasedVolume(v1.PersistentVolumeReclaimDelete))
	denied := true
	s.denyDeletion(&denied)
	if err := s.Reconcile(t.Context(), "v"); err == nil {
		t.Error("a deletion that was denied is no error")
	}
	next := releasedVolume(v1.PersistentVolumeReclaimDelete,
		func(v *v1.PersistentVolume) { v.Spec.ClaimRef.UID, v.ResourceVersion = "next", "9" })
	_, err := s.Client.CoreV1().PersistentVolumes().Update(t.Context(), next, metav1.UpdateOptions{})
	s.must(err)
	s.updateCaches()
	denied = false
	s.must(s.Reconcile(t.Context(), "v"))
	s.updateCaches()
	if calls := s.plugin.calls.Load(); calls != 2 || s.Caches.Volume("v") != nil {
		t.Errorf("the plugin was called %d times, want twice; the volume: %v", calls, s.Caches.Volume("v"))
	}
}

func TestObjectDeletionRequiresObservedVersion(t *testing.T) {
	s := newFixture(t, releasedVolume(v1.PersistentVolumeReclaimDelete))
	var got *metav1.Preconditions
	s.Client.(*fake.Clientset).PrependReactor("delete", "persistentvolumes",
		func(action clienttesting.Action) (bool, runtime.Object, error) {
			got = action.(clienttesting.DeleteActionImpl).DeleteOptions.Preconditions
			changed := s.Caches.Volume("v").DeepCopy()
			changed.ResourceVersion = "2"
			s.must(s.Client.(*fake.Clientset).Tracker().Update(v1.SchemeGroupVersion.WithResource("persistentvolumes"), changed,
				""))
			return true, nil, apierrors.NewConflict(v1.Resource("persistentvolumes"), "v", errors.New("modified"))
		})
	if err := s.Reconcile(t.Context(), "v"); !patch.IsStale(err) {
		t.Errorf("Reclaim returns %v, want a conflict", err)
	}
	if got == nil || got.UID == nil || *got.UID != "u" || got.ResourceVersion == nil || *got.ResourceVersion != "1" {
		t.Errorf("the preconditions are %v, want UID u and version 1", got)
	}
}

// releasedVolumes returns volumes with data in different directories.
func releasedVolumes(count int) []*v1.PersistentVolume {
	volumes := []*v1.PersistentVolume{}
	for i := range count {
		volumes = append(volumes, releasedVolume(v1.PersistentVolumeReclaimDelete, func(v *v1.PersistentVolume) {
			v.Name = fmt.Sprintf("hangs-%d", i)
			v.UID = types.UID(v.Name)
			v.Spec.HostPath.Path = "/data/" + v.Name
		}))
	}
	return volumes
}

func TestHangingPluginDelaysNoPhase(t *testing.T) {
	volumes := releasedVolumes(3 * Workers)
	s := newFixture(t)
	for _, volume := range volumes {
		_, err := s.Client.CoreV1().PersistentVolumes().Create(t.Context(), volume, metav1.CreateOptions{})
		s.must(err)
	}
	hanging, release := make(chan struct{}, len(volumes)), make(chan struct{})
	s.plugin.delete = func(context.Context) error {
		hanging <- struct{}{}
		<-release
		return nil
	}
	s.updateCaches()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	running.Go(func() { s.phases.Run(ctx, 1) })
	for _, volume := range volumes {
		s.phases.Enqueue(volume.Name)
	}
	for range Workers {
		<-hanging
	}
	watcher, err := s.Client.CoreV1().PersistentVolumes().Watch(ctx, metav1.ListOptions{})
	s.must(err)
	fresh := releasedVolume(v1.PersistentVolumeReclaimRetain, func(v *v1.PersistentVolume) {
		v.Name, v.UID, v.Spec.ClaimRef, v.Status.Phase = "new", "new", nil, v1.VolumePending
	})
	fresh, err = s.Client.CoreV1().PersistentVolumes().Create(ctx, fresh, metav1.CreateOptions{})
	s.must(err)
	s.must(s.Caches.Volumes.GetStore().Add(fresh))
	s.phases.Enqueue("new")
	for event := range watcher.ResultChan() {
		if volume, ok := event.Object.(*v1.PersistentVolume); ok && volume.Name == "new" &&
			volume.Status.Phase == v1.VolumeAvailable {
			break
		}
	}
	stop()
	close(release)
	running.Wait()
}

func TestRecyclerPodOfFormerClaimIsReplaced(t *testing.T) {
	volume := releasedVolume(v1.PersistentVolumeReclaimRecycle)
	old := (&intree.HostPath{}).RecyclerPod(volume)
	old.UID, old.Status.Phase = "old", v1.PodSucceeded
	old.Annotations[plugin.RecyclerAnnotation] = "u/before"
	s := newFixture(t, volume, old)
	for range 3 { // the old one is removed, the new one started, and waited for
		volume = s.reclaim()
	}
	if volume.Spec.ClaimRef == nil {
		t.Fatal("the volume was given away")
	}
	pod, err := s.Client.CoreV1().Pods("default").Get(t.Context(), "recycler-for-v", metav1.GetOptions{})
	s.must(err)
	if pod.Annotations[plugin.RecyclerAnnotation] != "u/c" {
		t.Errorf("the pod was created for %q", pod.Annotations[plugin.RecyclerAnnotation])
	}
	pod.Status.Phase = v1.PodSucceeded
	_, err = s.Client.CoreV1().Pods("default").UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
	s.must(err)
	s.updateCaches()
	if volume = s.reclaim(); volume.Spec.ClaimRef == nil || volume.Spec.ClaimRef.UID != "" ||
		volume.Status.Phase != v1.VolumeAvailable {
		t.Errorf("the volume refers to %+v and is %s; a person had reserved it for the name", volume.Spec.ClaimRef,
			volume.Status.Phase)
	}
	if want := "Normal VolumeRecycled: Volume recycled"; s.events.events[len(s.events.events)-1] != want {
		t.Errorf("events %v, want the last to be %q", s.events.events, want)
	}
}

func TestRetainDeletesRunningRecyclerPod(t *testing.T) {
	s := newFixture(t, releasedVolume(v1.PersistentVolumeReclaimRecycle))
	s.reclaim()
	pods := s.Client.CoreV1().Pods("default")
	_, err := pods.Get(t.Context(), "recycler-for-v", metav1.GetOptions{})
	s.must(err)
	volume := s.Caches.Volume("v").DeepCopy()
	volume.Spec.PersistentVolumeReclaimPolicy = v1.PersistentVolumeReclaimRetain
	_, err = s.Client.CoreV1().PersistentVolumes().Update(t.Context(), volume, metav1.UpdateOptions{})
	s.must(err)
	s.updateCaches()
	s.reclaim()
	if _, err := pods.Get(t.Context(), "recycler-for-v", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the recycler pod is still there: %v", err)
	}
}

// The rights to recycle are optional.
func TestMissingRightsToRecycleAreReportedAndRetried(t *testing.T) {
	for name, verb := range map[string]string{"read pods": "get", "create pods": "create"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFixture(t, releasedVolume(v1.PersistentVolumeReclaimRecycle))
				defer s.shutDown()
				granted := false
				s.Client.(*fake.Clientset).PrependReactor(verb, "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
					return !granted, nil, apierrors.NewForbidden(v1.Resource("pods"), "recycler-for-v", errors.New("no right"))
				})
				volume := s.reclaim()
				if volume.Status.Phase != v1.VolumeFailed || !strings.Contains(volume.Status.Message, "no right") {
					t.Errorf("the volume is %s: %q", volume.Status.Phase, volume.Status.Message)
				}
				if said := strings.Join(s.events.events, "; "); !strings.HasPrefix(said, "Warning VolumeFailedRecycle: ") {
					t.Errorf("events %q", said)
				}
				granted = true
				<-time.After(2 * firstRetry)
				s.reclaim()
				_, err := s.Client.CoreV1().Pods("default").Get(t.Context(), "recycler-for-v", metav1.GetOptions{})
				s.must(err)
			})
		})
	}
}

func TestMissingRightsDoNotFailClaimedVolume(t *testing.T) {
	claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "claim", UID: "c"},
		Spec: v1.PersistentVolumeClaimSpec{VolumeName: "v"}}
	s := newFixture(t, releasedVolume(v1.PersistentVolumeReclaimRecycle), claim) // the cache lacks the claim
	s.Client.(*fake.Clientset).PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(v1.Resource("pods"), "recycler-for-v", errors.New("no right"))
	})
	s.must(s.Reconcile(t.Context(), "v"))
	s.updateCaches()
	if volume := s.Caches.Volume("v"); volume.Status.Phase != v1.VolumeReleased || len(s.events.events) > 0 {
		t.Errorf("the volume is %s, events %v", volume.Status.Phase, s.events.events)
	}
}

func TestVolumeOlderThanOwnWriteIsRequeued(t *testing.T) {
	s := newFixture(t, releasedVolume(v1.PersistentVolumeReclaimDelete))
	defer s.shutDown()
	written := releasedVolume(v1.PersistentVolumeReclaimDelete)
	written.ResourceVersion = "2"
	s.Versions.RecordWrite(written)
	if err := s.Reconcile(t.Context(), "v"); !errors.Is(err, controller.ErrStaleCache) || s.plugin.calls.Load() > 0 {
		t.Errorf("Reconcile() = %v after %d calls, want %v", err, s.plugin.calls.Load(), controller.ErrStaleCache)
	}
}
