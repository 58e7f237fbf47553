package library

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

const (
	external = "external-provisioner.volume.kubernetes.io/finalizer"
	keep     = v1.PersistentVolumeReclaimRetain
	remove   = v1.PersistentVolumeReclaimDelete
)

// reclaimCase is one of the ten cases.
type reclaimCase struct{ harness.ReclaimCase }

var reclaimCases = []reclaimCase{
	{harness.ReclaimCase{Static: false, Policy: remove, Order: harness.ClaimOnly}},
	{harness.ReclaimCase{Static: false, Policy: remove, Order: harness.VolumeThenClaim}},
	{harness.ReclaimCase{Static: true, Policy: remove, Order: harness.ClaimOnly}},
	{harness.ReclaimCase{Static: true, Policy: remove, Order: harness.VolumeThenClaim}},
	{harness.ReclaimCase{Static: false, Policy: keep, Order: harness.ClaimThenVolume}},
	{harness.ReclaimCase{Static: false, Policy: keep, Order: harness.VolumeThenClaim}},
	{harness.ReclaimCase{Static: true, Policy: keep, Order: harness.ClaimThenVolume}},
	{harness.ReclaimCase{Static: true, Policy: keep, Order: harness.VolumeThenClaim}},
	{harness.ReclaimCase{Static: false, Policy: keep, Becomes: remove, Order: harness.VolumeThenClaim}},
	{harness.ReclaimCase{Static: false, Policy: remove, Becomes: keep, Order: harness.VolumeThenClaim}},
}

// deletes reports whether the policy at the end is Delete.
func (j reclaimCase) deletes() bool { return j.IsReclaimed(true) }

// leaks reports whether the engine leaves the volume behind: without the finalizer nothing
// keeps a PersistentVolume that is deleted before its claim.
func (j reclaimCase) leaks(on engine) bool {
	return on == v10Default && j.deletes() && j.Order == harness.VolumeThenClaim
}

func TestReclaimPolicyInEveryOrder(t *testing.T) {
	harness.Parallel(t, withoutProvisioner)
	for _, on := range engines {
		for _, j := range reclaimCases {
			t.Run(fmt.Sprintf("%s/%s", on, j), func(t *testing.T) {
				s := startFixture(t, on)
				volume := s.runCase(j)
				s.expectReclaimed(j, volume)
			})
		}
	}
}

// runCase binds and deletes one volume in the order of the case.
func (s *fixture) runCase(j reclaimCase) *v1.PersistentVolume {
	s.T.Helper()
	volume := s.bind(j)
	s.awaitFinalizer(volume.Name, j.Policy)
	if j.Becomes != "" {
		s.SetPolicy(volume.Name, j.Becomes)
		s.awaitFinalizer(volume.Name, j.Becomes)
	}
	if j.Order == harness.VolumeThenClaim {
		s.DeleteVolume(volume.Name)
		s.AwaitVolume(volume.Name, "is Terminating and bound", func(v *v1.PersistentVolume) bool {
			return v.DeletionTimestamp != nil && v.Status.Phase == v1.VolumeBound
		})
	}
	s.DeleteClaim("claim")
	if j.Order == harness.ClaimThenVolume {
		s.AwaitVolume(volume.Name, "is released", harness.IsReleased)
		s.DeleteVolume(volume.Name)
	}
	s.AwaitClaimGone("claim")
	s.AwaitVolumeGone(volume.Name)
	return volume
}

// bind returns the volume of a claim named "claim".
func (s *fixture) bind(j reclaimCase) *v1.PersistentVolume {
	s.T.Helper()
	class := s.name
	switch {
	case j.Static:
		class = s.createVolume(j.Policy).Spec.StorageClassName
	case j.Policy == keep:
		class = s.retained()
	}
	s.CreateClaim("claim", class)
	return s.AwaitBound("claim")
}

// awaitFinalizer waits until the volume has the finalizer that the policy asks for.
func (s *fixture) awaitFinalizer(volume string, policy v1.PersistentVolumeReclaimPolicy) {
	s.T.Helper()
	if s.engine == v10Default {
		return
	}
	s.AwaitVolume(volume, "has the finalizers of policy "+string(policy), func(v *v1.PersistentVolume) bool {
		return slices.Contains(v.Finalizers, external) == (policy == remove)
	})
}

// expectReclaimed compares the storage system with the reclaim policy.
func (s *fixture) expectReclaimed(j reclaimCase, volume *v1.PersistentVolume) {
	s.T.Helper()
	s.passQueues()
	stored, deletions := s.stored(directory(volume)), s.count(deleted, volume.Name)
	leaked := stored && j.deletes()
	left := map[bool]string{true: "kept", false: "reclaimed"}[stored]
	if leaked {
		left = "**leaked**"
	}
	s.record(j.String(), left)
	switch {
	case leaked != j.leaks(s.engine):
		s.T.Errorf("leaked = %v, want %v", leaked, j.leaks(s.engine))
	case !stored && !j.deletes():
		s.T.Error("the data of a volume with policy Retain is lost")
	case s.deletesOnce() && deletions != map[bool]int{true: 1, false: 0}[j.deletes()]:
		s.T.Errorf("Delete was called %d times", deletions)
	}
}

// deletesOnce reports whether the engine calls Delete once for each volume. v10 calls it
// again when its cache is stale.
func (s *fixture) deletesOnce() bool { return s.engine != v10 && s.engine != v10Default }

func TestFinalizerIsInFirstWrite(t *testing.T) {
	harness.Parallel(t, withoutProvisioner)
	for _, on := range engines {
		t.Run(string(on), func(t *testing.T) {
			s := startFixture(t, on)
			watcher, err := s.Client.CoreV1().PersistentVolumes().Watch(s.Ctx, metav1.ListOptions{})
			s.Must(err, "watch volumes")
			defer watcher.Stop()
			s.CreateClaim("keep", s.retained())
			s.CreateClaim("remove", s.name)
			first := map[string]bool{}
			for event := range watcher.ResultChan() {
				volume, ok := event.Object.(*v1.PersistentVolume)
				if !ok || volume.Spec.ClaimRef == nil || volume.Spec.ClaimRef.Namespace != s.name {
					continue
				}
				if _, seen := first[volume.Spec.ClaimRef.Name]; !seen {
					first[volume.Spec.ClaimRef.Name] = slices.Contains(volume.Finalizers, external)
				}
				if len(first) == 2 {
					break
				}
			}
			// v10 adds the finalizer to volumes of every policy.
			want := map[string]bool{"keep": on == v10, "remove": on != v10Default}
			if first["keep"] != want["keep"] || first["remove"] != want["remove"] {
				t.Errorf("finalizer in the first write: %v, want %v", first, want)
			}
		})
	}
}
