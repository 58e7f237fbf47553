package storage

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

var reclaimCases = []harness.ReclaimCase{
	{Static: false, Policy: v1.PersistentVolumeReclaimDelete, Order: harness.ClaimOnly},
	{Static: false, Policy: v1.PersistentVolumeReclaimDelete, Order: harness.VolumeThenClaim},
	{Static: true, Policy: v1.PersistentVolumeReclaimDelete, Order: harness.ClaimOnly},
	{Static: true, Policy: v1.PersistentVolumeReclaimDelete, Order: harness.VolumeThenClaim},
	{Static: false, Policy: v1.PersistentVolumeReclaimRetain, Order: harness.ClaimThenVolume},
	{Static: false, Policy: v1.PersistentVolumeReclaimRetain, Order: harness.VolumeThenClaim},
	{Static: true, Policy: v1.PersistentVolumeReclaimRetain, Order: harness.ClaimThenVolume},
	{Static: true, Policy: v1.PersistentVolumeReclaimRetain, Order: harness.VolumeThenClaim},
	{Static: false, Policy: v1.PersistentVolumeReclaimRetain, Becomes: v1.PersistentVolumeReclaimDelete, Order: harness.VolumeThenClaim},
	{Static: false, Policy: v1.PersistentVolumeReclaimDelete, Becomes: v1.PersistentVolumeReclaimRetain, Order: harness.VolumeThenClaim},
}

func TestReclaimHonorsPolicyInEveryOrder(t *testing.T) {
	harness.Parallel(t, harness.Setup{}, harness.Setup{GateOff: true})
	for _, honor := range []bool{true, false} {
		for _, j := range reclaimCases {
			t.Run(fmt.Sprintf("gate %v/%s", honor, j), func(t *testing.T) {
				checkReclaimCase(harness.Join(t, harness.Setup{GateOff: !honor}), j, honor)
			})
		}
	}
}

// checkReclaimCase plays the case and checks the storage system afterwards.
func checkReclaimCase(s *harness.Session, j harness.ReclaimCase, honor bool) {
	volume := s.BindAndDelete(j, honor)
	if j.IsReclaimed(honor) {
		s.ExpectReclaimed(volume)
		return
	}
	expectKept(s, volume)
}

// expectKept checks, after all queues were passed, that DeleteVolume was not called for
// the volume.
func expectKept(s *harness.Session, volume *v1.PersistentVolume) {
	s.T.Helper()
	s.PassQueues()
	if !s.IsStored(harness.Handle(volume)) {
		s.T.Errorf("the data of volume %s is lost: the storage system no longer has %s", volume.Name, harness.Handle(volume))
	}
	if calls := s.CountCalls("DeleteVolume", harness.Handle(volume)); calls != 0 {
		s.T.Errorf("DeleteVolume was called %d times for %s, want never", calls, harness.Handle(volume))
	}
}

func TestProvisionedVolumeHasFinalizerFromFirstWrite(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	watcher, err := s.Client.CoreV1().PersistentVolumes().Watch(s.Ctx, metav1.ListOptions{})
	s.Must(err, "watch volumes")
	defer watcher.Stop()
	claims := []*v1.PersistentVolumeClaim{s.CreateClaim("keep", harness.RetainClass),
		s.CreateClaim("drop", harness.DeleteClass)}
	seen := map[string]bool{}
	for event := range watcher.ResultChan() {
		volume, ok := event.Object.(*v1.PersistentVolume)
		if !ok || volume.Spec.ClaimRef == nil || volume.Spec.ClaimRef.Namespace != s.Namespace {
			continue
		}
		want := volume.Spec.StorageClassName == harness.DeleteClass
		if got := finalizer.Has(volume.Finalizers, finalizer.External); got != want {
			t.Errorf("%s of a volume of class %s: finalizers %v", event.Type, volume.Spec.StorageClassName, volume.Finalizers)
		}
		if volume.Status.Phase == v1.VolumeBound {
			seen[volume.Spec.ClaimRef.Name] = true
		}
		if !slices.ContainsFunc(claims, func(c *v1.PersistentVolumeClaim) bool { return !seen[c.Name] }) {
			return
		}
	}
	t.Fatalf("only %v were bound", seen)
}
