package volume

import (
	"context"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/workqueue" // has queues counted

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/pvcache"
)

// added returns how many keys the queue was given.
func added(t *testing.T, queue string) float64 {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.Metric {
			if family.GetName() == "workqueue_adds_total" && metric.Label[0].GetValue() == queue {
				return metric.GetCounter().GetValue()
			}
		}
	}
	return 0
}

// deleting is an available volume that carries pv-protection.
func deleting(phase v1.PersistentVolumePhase) *v1.PersistentVolume {
	return releasedVolume(v1.PersistentVolumeReclaimRetain, createdByPerson, unclaimed, inPhase(phase),
		func(v *v1.PersistentVolume) {
			now := metav1.Now()
			v.DeletionTimestamp, v.Finalizers = &now, []string{string(finalizer.VolumeProtection)}
		})
}

func TestDeletedVolumePassesProtectionQueue(t *testing.T) {
	client := fake.NewClientset(deleting(v1.VolumeAvailable))
	factory := informers.NewSharedInformerFactory(client, 0)
	caches, err := pvcache.New(factory)
	if err != nil {
		t.Fatal(err)
	}
	patched, before := make(chan string, 10), added(t, "pvprotection")
	client.PrependReactor("patch", "persistentvolumes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patched <- string(action.(clienttesting.PatchAction).GetPatch())
		return false, nil, nil
	})
	c, _ := newControllers(t, client, caches, &recorder{})
	running, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	factory.StartWithContext(running)
	factory.WaitForCacheSync(running.Done())
	if err := c.Watch(running); err != nil {
		t.Fatal(err)
	}
	go func() { defer close(ended); c.Run(running, 1) }()
	select {
	case <-patched:
	case <-time.After(20 * time.Second):
		t.Error("pv-protection is still there")
	}
	stop()
	<-ended
	if after := added(t, "pvprotection"); after <= before {
		t.Errorf("%v keys in the queue pvprotection, %v before", after, before)
	}
	if len(patched) > 0 {
		t.Errorf("another patch of the volume: %s", <-patched)
	}
}

func TestProtectionIsRemovedAfterPhase(t *testing.T) {
	for name, tc := range map[string]struct {
		volume  *v1.PersistentVolume
		claim   *v1.PersistentVolumeClaim
		removed bool
	}{
		"no claimRef":             {deleting(v1.VolumeAvailable), nil, true},
		"phase not set":           {deleting(v1.VolumePending), nil, false},
		"about to become Bound":   {claimedBy(deleting(v1.VolumeAvailable)), claimOfName("c", "v"), false},
		"claim gone, phase Bound": {claimedBy(deleting(v1.VolumeBound)), nil, false},
		"released":                {claimedBy(deleting(v1.VolumeReleased)), nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []runtime.Object{tc.volume}
			if tc.claim != nil {
				objects = append(objects, tc.claim)
			}
			s := newFixture(t, objects...)
			if tc.claim != nil {
				s.must(s.Caches.Claims.GetStore().Add(tc.claim))
			}
			s.must(s.Protect(t.Context(), "v"))
			s.updateCaches()
			volume := s.Caches.Volume("v")
			if got := volume == nil || !slices.Contains(volume.Finalizers,
				string(finalizer.VolumeProtection)); got != tc.removed {
				t.Errorf("pv-protection is removed: %v, want %v", got, tc.removed)
			}
		})
	}
}

func claimedBy(volume *v1.PersistentVolume) *v1.PersistentVolume {
	volume.Spec.ClaimRef = &v1.ObjectReference{Namespace: "ns", Name: "claim", UID: "c"}
	return volume
}
