package reclaimer

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
)

// volumeIn returns a released volume with policy Delete whose data is in the directory.
func volumeIn(name, directory string, change ...func(*v1.PersistentVolume)) *v1.PersistentVolume {
	return releasedVolume(v1.PersistentVolumeReclaimDelete,
		append([]func(*v1.PersistentVolume){func(v *v1.PersistentVolume) {
			v.Name, v.UID, v.Spec.HostPath.Path = name, types.UID(name), directory
			v.Spec.ClaimRef.Name = "claim-of-" + name
		}}, change...)...)
}

func retain(v *v1.PersistentVolume) {
	v.Spec.PersistentVolumeReclaimPolicy = v1.PersistentVolumeReclaimRetain
}

func recycle(v *v1.PersistentVolume) {
	v.Spec.PersistentVolumeReclaimPolicy = v1.PersistentVolumeReclaimRecycle
}

// local makes a static volume of the plugin for local volumes out of a host-path volume.
func local(v *v1.PersistentVolume) {
	static(v)
	v.Spec.Local, v.Spec.HostPath = &v1.LocalVolumeSource{Path: v.Spec.HostPath.Path}, nil
}

func inPhase(phase v1.PersistentVolumePhase) func(*v1.PersistentVolume) {
	return func(v *v1.PersistentVolume) { v.Status.Phase = phase }
}

// claimOf returns the claim that is bound to the volume.
func claimOf(volume *v1.PersistentVolume) *v1.PersistentVolumeClaim {
	ref := volume.Spec.ClaimRef
	return &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID},
		Spec:       v1.PersistentVolumeClaimSpec{VolumeName: volume.Name},
	}
}

// Nobody else looks after the data of a local volume.
func TestVolumeAroundLocalVolumeIsKept(t *testing.T) {
	on := func(node string) func(*v1.PersistentVolume) {
		return func(v *v1.PersistentVolume) { v.Spec.NodeAffinity = pinned("", node).Spec.NodeAffinity }
	}
	for name, tc := range map[string]struct {
		outer, inner *v1.PersistentVolume
		kept         bool
	}{
		"Delete":                   {volumeIn("outer", "/data"), volumeIn("inner", "/data/disk", local, inPhase(v1.VolumeBound), on("b")), true},
		"Recycle":                  {volumeIn("outer", "/data", static, recycle), volumeIn("inner", "/data/disk", local, inPhase(v1.VolumeBound), on("b")), true},
		"the same directory":       {volumeIn("outer", "/data"), volumeIn("inner", "/data", local, retain), true},
		"nodes are different":      {volumeIn("outer", "/data", on("a")), volumeIn("inner", "/data/disk", local, on("b")), false},
		"directories are distinct": {volumeIn("outer", "/data"), volumeIn("inner", "/data2", local), false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, tc.outer, tc.inner)
			s.plugin.HostPath = intree.HostPath{Node: "a"}
			defer s.shutDown()
			s.must(s.Reconcile(t.Context(), "outer"))
			s.updateCaches()
			if kept := s.plugin.calls.Load() == 0 && s.Caches.Pod("default/recycler-for-outer") == nil; kept != tc.kept {
				t.Errorf("the data is kept: %v, want %v", kept, tc.kept)
			}
		})
	}
}

// The data of the inner volume belongs to the outer volume, too.
func TestVolumeInsideAnotherWaits(t *testing.T) {
	const event = `Warning VolumeHandleShared: The volume is not reclaimed, because its data is inside the directory of volume "outer"; if that volume is in use, set the policy of this one to Retain`
	for name, tc := range map[string]struct {
		outer *v1.PersistentVolume
		waits bool
	}{
		"outer is Retain":             {volumeIn("outer", "/data", retain), true},
		"outer is Bound":              {volumeIn("outer", "/data", inPhase(v1.VolumeBound)), true},
		"outer is Available":          {volumeIn("outer", "/data", inPhase(v1.VolumeAvailable)), true},
		"outer has an unknown policy": {volumeIn("outer", "/data", func(v *v1.PersistentVolume) { v.Spec.PersistentVolumeReclaimPolicy = "Shred" }), true},
		"outer is of another program": {volumeIn("outer", "/data",
			func(v *v1.PersistentVolume) { v.Annotations["pv.kubernetes.io/provisioned-by"] = "example.com" }), true},
		"outer is the root": {volumeIn("outer", "/", retain), true},
		"outer is being deleted": {volumeIn("outer", "/data", retain,
			func(v *v1.PersistentVolume) { v.DeletionTimestamp, v.Finalizers = &metav1.Time{}, []string{"x"} }), true},
		"outer will be deleted":          {volumeIn("outer", "/data"), false},
		"outer failed to be deleted":     {volumeIn("outer", "/data", inPhase(v1.VolumeFailed)), false},
		"outer will be recycled":         {volumeIn("outer", "/data", recycle), false},
		"outer is a local volume":        {volumeIn("outer", "/data", local), true},
		"outer is on another node":       {pinned("outer", "a"), false},
		"directories share a name start": {volumeIn("outer", "/data/v/in", retain), false},
		"volumes are siblings":           {volumeIn("outer", "/data/v/other", retain), false},
	} {
		t.Run(name, func(t *testing.T) {
			inner := pinned("inner", "b")
			inner.Spec.HostPath.Path = "/data/v/inner"
			s := newFixture(t, inner, tc.outer)
			defer s.shutDown()
			s.must(s.Reconcile(t.Context(), "inner"))
			if kept := s.plugin.calls.Load() == 0; kept != tc.waits {
				t.Errorf("the data is kept: %v, want %v", kept, tc.waits)
			}
			if reported := slices.Contains(s.events.events, event); reported != tc.waits {
				t.Errorf("events %q", s.events.events)
			}
		})
	}
}

func TestVolumeInsideAnotherIsNotRecycled(t *testing.T) {
	s := newFixture(t, volumeIn("inner", "/data/inner", static, recycle), volumeIn("outer", "/data", retain))
	defer s.shutDown()
	s.must(s.Reconcile(t.Context(), "inner"))
	if pods, err := s.Client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{}); err != nil || len(pods.Items) > 0 {
		t.Errorf("recycler pods %v, %v", pods.Items, err)
	}
	if len(s.events.events) != 1 || !strings.Contains(s.events.events[0], `"outer"`) {
		t.Errorf("events %q", s.events.events)
	}
}

// The outer volume seems to be released until its claim is read.
func TestClaimOfOuterVolumeSavesInnerVolume(t *testing.T) {
	outer := volumeIn("outer", "/data")
	s := newFixture(t, volumeIn("inner", "/data/inner"), outer)
	defer s.shutDown()
	s.must(s.Caches.Claims.GetStore().Add(claimOf(outer)))
	s.must(s.Reconcile(t.Context(), "inner"))
	if s.plugin.calls.Load() != 0 {
		t.Error("the data of a claimed volume was deleted")
	}
}

// TestRetainOfOuterVolumeCountsUntilPluginDeletes changes the outer volume while the cache is stale.
func TestRetainOfOuterVolumeCountsUntilPluginDeletes(t *testing.T) {
	outer := volumeIn("outer", "/data")
	for name, change := range map[string]func(*fixture) error{
		"policy becomes Retain": func(s *fixture) error {
			return s.Client.(*fake.Clientset).Tracker().Update(v1.SchemeGroupVersion.WithResource("persistentvolumes"),
				volumeIn("outer", "/data", retain), "")
		},
		"claim exists": func(s *fixture) error { return s.Client.(*fake.Clientset).Tracker().Add(claimOf(outer)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, volumeIn("inner", "/data/inner"), outer)
			defer s.shutDown()
			s.must(change(s))
			s.must(s.Reconcile(t.Context(), "inner"))
			if s.plugin.calls.Load() != 0 {
				t.Error("the plugin was called")
			}
			if len(s.events.events) != 1 || !strings.Contains(s.events.events[0], `"outer"`) {
				t.Errorf("events %q", s.events.events)
			}
		})
	}
}

func TestUnreadableOuterVolumeSavesInnerVolume(t *testing.T) {
	s := newFixture(t, volumeIn("inner", "/data/inner"), volumeIn("outer", "/data"))
	defer s.shutDown()
	s.Client.(*fake.Clientset).PrependReactor("get", "persistentvolumes",
		func(action clienttesting.Action) (bool, runtime.Object, error) {
			return action.(clienttesting.GetAction).GetName() == "outer", nil, context.DeadlineExceeded
		})
	if err := s.Reconcile(t.Context(), "inner"); err == nil {
		t.Error("the error is lost")
	}
	if s.plugin.calls.Load() != 0 {
		t.Error("the plugin was called")
	}
}

// All volumes are to be deleted: each goes, whichever is reconciled first.
func TestNestedVolumesAreAllDeleted(t *testing.T) {
	for _, order := range [][]string{{"outer", "middle", "inner"}, {"inner", "middle", "outer"},
		{"middle", "outer", "inner"}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			s := newFixture(t, volumeIn("outer", "/data"), volumeIn("middle", "/data/a"), volumeIn("inner", "/data/a/b"))
			defer s.shutDown()
			for range order {
				for _, name := range order {
					s.must(s.Reconcile(t.Context(), name))
					s.updateCaches()
				}
			}
			if left := s.Caches.Volumes.GetStore().ListKeys(); len(left) > 0 {
				t.Errorf("%v remain", left)
			}
		})
	}
}

// The change of the outer volume wakes the inner volume.
func TestOuterVolumeWakesInnerVolume(t *testing.T) {
	for name, change := range map[string]func(s *fixture, outer *v1.PersistentVolume) error{
		"outer is gone": func(s *fixture, outer *v1.PersistentVolume) error {
			err := s.Caches.Volumes.GetStore().Delete(outer)
			s.volumeGone(outer)
			return err
		},
		"outer is to be deleted": func(s *fixture, _ *v1.PersistentVolume) error {
			outer := volumeIn("outer", "/data")
			err := s.Caches.Volumes.GetStore().Update(outer)
			s.Enqueue(outer)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				outer := volumeIn("outer", "/data", retain)
				s := newFixture(t, volumeIn("inner", "/data/a/inner"), outer,
					volumeIn("beside", "/data/a/beside", inPhase(v1.VolumeBound)))
				s.must(s.Client.(*fake.Clientset).Tracker().Update(v1.SchemeGroupVersion.WithResource("persistentvolumes"),
					volumeIn("outer", "/data"), ""))
				defer s.runInBackground(t)()
				s.Enqueue(s.Caches.Volume("inner"))
				synctest.Wait()
				if s.plugin.calls.Load() != 0 {
					t.Fatal("the inner volume did not wait")
				}
				s.must(change(s, outer))
				synctest.Wait()
				if s.plugin.calls.Load() != 1 {
					t.Errorf("the plugin was called %d times, want once: for the inner volume", s.plugin.calls.Load())
				}
			})
		})
	}
}

// The recycler pod of the outer volume would remove the data of the inner volume as well.
func TestNewVolumeInsideEndsRecyclerPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outer := volumeIn("outer", "/data", static, recycle)
		s := newFixture(t, outer)
		defer s.runInBackground(t)()
		s.Enqueue(outer)
		synctest.Wait()
		s.updateCaches()
		if s.Caches.Pod("default/recycler-for-outer") == nil {
			t.Fatal("there is no recycler pod")
		}
		inner := volumeIn("inner", "/data/a/inner", static, inPhase(v1.VolumeAvailable))
		s.must(s.Client.(*fake.Clientset).Tracker().Add(inner))
		s.updateCaches()
		s.volumeChanged(nil, inner)
		synctest.Wait()
		s.updateCaches()
		if s.Caches.Pod("default/recycler-for-outer") != nil {
			t.Error("the recycler pod still removes data of the inner volume")
		}
	})
}

// runInBackground runs the loop until the returned function is called.
func (s *fixture) runInBackground(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Run(ctx)
	}()
	return func() {
		cancel()
		<-ended
		s.phases.Run(ctx, 1)
	}
}
