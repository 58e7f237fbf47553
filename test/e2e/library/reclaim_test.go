package library

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	external = "external-provisioner.volume.kubernetes.io/finalizer"
	keep     = v1.PersistentVolumeReclaimRetain
	remove   = v1.PersistentVolumeReclaimDelete
)

// order is in which order the user deletes.
type order string

const (
	claimOnly       order = "claim only"
	claimThenVolume order = "claim, then PV"
	volumeThenClaim order = "PV, then claim"
)

// journey is one of the ten cases: how a volume comes, what happens to its policy, and
// how it goes.
type journey struct {
	static bool
	policy v1.PersistentVolumeReclaimPolicy
	// becomes is the policy that it gets while bound; empty for none.
	becomes v1.PersistentVolumeReclaimPolicy
	order   order
}

var journeys = []journey{
	{static: false, policy: remove, order: claimOnly},
	{static: false, policy: remove, order: volumeThenClaim},
	{static: true, policy: remove, order: claimOnly},
	{static: true, policy: remove, order: volumeThenClaim},
	{static: false, policy: keep, order: claimThenVolume},
	{static: false, policy: keep, order: volumeThenClaim},
	{static: true, policy: keep, order: claimThenVolume},
	{static: true, policy: keep, order: volumeThenClaim},
	{static: false, policy: keep, becomes: remove, order: volumeThenClaim},
	{static: false, policy: remove, becomes: keep, order: volumeThenClaim},
}

func (j journey) String() string {
	kind := map[bool]string{true: "static", false: "dynamic"}[j.static]
	policy := string(j.policy)
	if j.becomes != "" {
		policy += " to " + string(j.becomes)
	}
	return fmt.Sprintf("%s, %s: %s", kind, policy, j.order)
}

// deletes reports whether the policy at the end is Delete.
func (j journey) deletes() bool { return j.becomes == remove || j.becomes == "" && j.policy == remove }

// leaks reports whether the engine leaves the volume behind: without the finalizer nothing
// keeps a PersistentVolume that is deleted before its claim.
func (j journey) leaks(on engine) bool {
	return on == v10Default && j.deletes() && j.order == volumeThenClaim
}

func TestReclaimPolicyInEveryOrder(t *testing.T) {
	for _, on := range engines {
		for _, j := range journeys {
			t.Run(fmt.Sprintf("%s/%s", on, j), func(t *testing.T) {
				t.Parallel()
				s := enter(t, on)
				volume := s.travel(j)
				s.conclude(j, volume)
			})
		}
	}
}

// travel takes one volume along its journey until its object is gone.
func (s *scene) travel(j journey) *v1.PersistentVolume {
	s.t.Helper()
	volume := s.bind(j)
	s.awaitFinalizer(volume.Name, j.policy)
	if j.becomes != "" {
		s.setPolicy(volume.Name, j.becomes)
		s.awaitFinalizer(volume.Name, j.becomes)
	}
	if j.order == volumeThenClaim {
		s.deleteVolume(volume.Name)
		s.awaitVolume(volume.Name, "is Terminating and bound", func(v *v1.PersistentVolume) bool {
			return v.DeletionTimestamp != nil && v.Status.Phase == v1.VolumeBound
		})
	}
	s.deleteClaim("claim")
	if j.order == claimThenVolume {
		s.awaitVolume(volume.Name, "is released", func(v *v1.PersistentVolume) bool { return v.Status.Phase == v1.VolumeReleased })
		s.deleteVolume(volume.Name)
	}
	s.awaitClaimGone("claim")
	s.awaitVolumeGone(volume.Name)
	return volume
}

// bind returns the volume of a claim named "claim".
func (s *scene) bind(j journey) *v1.PersistentVolume {
	s.t.Helper()
	class := s.name
	switch {
	case j.static:
		class = s.createVolume(j.policy).Spec.StorageClassName
	case j.policy == keep:
		class = s.retained()
	}
	s.createClaim("claim", class)
	return s.awaitBound("claim")
}

// awaitFinalizer waits until the volume has the finalizer that the policy asks for.
func (s *scene) awaitFinalizer(volume string, policy v1.PersistentVolumeReclaimPolicy) {
	s.t.Helper()
	if s.engine == v10Default {
		return
	}
	s.awaitVolume(volume, "has the finalizers of policy "+string(policy), func(v *v1.PersistentVolume) bool {
		return slices.Contains(v.Finalizers, external) == (policy == remove)
	})
}

// conclude compares the storage system with what the policy says.
func (s *scene) conclude(j journey, volume *v1.PersistentVolume) {
	s.t.Helper()
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
		s.t.Errorf("leaked = %v, want %v", leaked, j.leaks(s.engine))
	case !stored && !j.deletes():
		s.t.Error("the data of a volume with policy Retain is lost")
	case s.deletesOnce() && deletions != map[bool]int{true: 1, false: 0}[j.deletes()]:
		s.t.Errorf("Delete was called %d times", deletions)
	}
}

// deletesOnce reports whether the engine calls Delete once for each volume. v10 calls it
// again when its cache is stale.
func (s *scene) deletesOnce() bool { return s.engine != v10 && s.engine != v10Default }

func TestFinalizerIsInFirstWrite(t *testing.T) {
	for _, on := range engines {
		t.Run(string(on), func(t *testing.T) {
			t.Parallel()
			s := enter(t, on)
			watcher, err := s.client.CoreV1().PersistentVolumes().Watch(s.ctx, metav1.ListOptions{})
			s.must(err, "watch volumes")
			defer watcher.Stop()
			s.createClaim("keep", s.retained())
			s.createClaim("remove", s.name)
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
