package e2e

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
)

// order is in which order the user deletes.
type order string

const (
	claimOnly       order = "claim only"
	claimThenVolume order = "claim, then PV"
	volumeThenClaim order = "PV, then claim"
)

// journey is one case of rows.md, "e2e": how a volume comes, what happens to its
// policy, and how it goes.
type journey struct {
	static bool
	policy v1.PersistentVolumeReclaimPolicy
	// becomes is the policy that it gets while bound; empty for none.
	becomes v1.PersistentVolumeReclaimPolicy
	order   order
}

func (j journey) String() string {
	kind := map[bool]string{true: "static", false: "dynamic"}[j.static]
	policy := string(j.policy)
	if j.becomes != "" {
		policy += " to " + string(j.becomes)
	}
	return fmt.Sprintf("%s, %s: %s", kind, policy, j.order)
}

func (j journey) lastPolicy() v1.PersistentVolumeReclaimPolicy {
	if j.becomes != "" {
		return j.becomes
	}
	return j.policy
}

// reclaimed says whether the volume must be gone from the storage system. With the
// gate off, a volume that is deleted before its claim stays behind: the very leak.
func (j journey) reclaimed(honor bool) bool {
	return j.lastPolicy() == v1.PersistentVolumeReclaimDelete && (honor || j.order == claimOnly)
}

var journeys = []journey{
	{static: false, policy: v1.PersistentVolumeReclaimDelete, order: claimOnly},
	{static: false, policy: v1.PersistentVolumeReclaimDelete, order: volumeThenClaim},
	{static: true, policy: v1.PersistentVolumeReclaimDelete, order: claimOnly},
	{static: true, policy: v1.PersistentVolumeReclaimDelete, order: volumeThenClaim},
	{static: false, policy: v1.PersistentVolumeReclaimRetain, order: claimThenVolume},
	{static: false, policy: v1.PersistentVolumeReclaimRetain, order: volumeThenClaim},
	{static: true, policy: v1.PersistentVolumeReclaimRetain, order: claimThenVolume},
	{static: true, policy: v1.PersistentVolumeReclaimRetain, order: volumeThenClaim},
	{static: false, policy: v1.PersistentVolumeReclaimRetain, becomes: v1.PersistentVolumeReclaimDelete, order: volumeThenClaim},
	{static: false, policy: v1.PersistentVolumeReclaimDelete, becomes: v1.PersistentVolumeReclaimRetain, order: volumeThenClaim},
}

func TestReclaimHonoursThePolicyInEveryOrder(t *testing.T) {
	for _, honor := range []bool{true, false} {
		for _, j := range journeys {
			t.Run(fmt.Sprintf("gate %v/%s", honor, j), func(t *testing.T) {
				t.Parallel()
				travel(enter(t, shared(t, setup{honor: honor})), j, honor)
			})
		}
	}
}

// travel takes one volume along its journey and looks at the storage system afterwards.
func travel(s *scene, j journey, honor bool) {
	volume := s.depart(j, honor)
	if j.reclaimed(honor) {
		s.expectReclaimed(volume)
		return
	}
	s.expectKept(volume)
}

// depart takes one volume along its journey until its object is gone.
func (s *scene) depart(j journey, honor bool) *v1.PersistentVolume {
	s.t.Helper()
	volume := s.bind(j)
	s.expectFinalizer(volume, honor && j.policy == v1.PersistentVolumeReclaimDelete)
	if j.becomes != "" {
		s.setPolicy(volume.Name, j.becomes)
		s.expectFinalizer(volume, honor && j.becomes == v1.PersistentVolumeReclaimDelete)
	}
	switch j.order {
	case claimOnly:
		s.deleteClaim("claim")
	case claimThenVolume:
		s.deleteClaim("claim")
		s.awaitVolume(volume.Name, "is released", isReleased)
		s.deleteVolume(volume.Name)
	case volumeThenClaim:
		s.deleteVolume(volume.Name)
		s.awaitVolume(volume.Name, "is Terminating and still bound", func(v *v1.PersistentVolume) bool {
			return v.DeletionTimestamp != nil && v.Status.Phase == v1.VolumeBound
		})
		s.deleteClaim("claim")
	}
	s.awaitClaimGone("claim")
	s.awaitVolumeGone(volume.Name)
	return volume
}

// bind returns the volume of a claim named "claim", bound as the journey begins.
func (s *scene) bind(j journey) *v1.PersistentVolume {
	s.t.Helper()
	if !j.static {
		class := map[v1.PersistentVolumeReclaimPolicy]string{v1.PersistentVolumeReclaimDelete: deleteClass, v1.PersistentVolumeReclaimRetain: retainClass}[j.policy]
		s.createClaim("claim", class)
		return s.awaitBound("claim")
	}
	s.createVolume(s.makeVolume("static"), j.policy)
	s.createClaim("claim", s.namespace)
	return s.awaitBound("claim")
}

// expectFinalizer waits for the finalizer External to be there. Where it must not
// be, it looks at every version of the volume so far instead.
func (s *scene) expectFinalizer(volume *v1.PersistentVolume, wanted bool) {
	s.t.Helper()
	has := func(v *v1.PersistentVolume) bool { return finalizer.Has(v.Finalizers, finalizer.External) }
	if wanted {
		s.awaitVolume(volume.Name, "has the finalizer", has)
		return
	}
	s.awaitVolume(volume.Name, "has no finalizer", func(v *v1.PersistentVolume) bool { return !has(v) })
	s.passQueues()
	now, err := s.client.CoreV1().PersistentVolumes().Get(s.ctx, volume.Name, metav1.GetOptions{})
	s.must(err, "read volume")
	if has(now) {
		s.t.Errorf("volume %s got the finalizer: %v", volume.Name, now.Finalizers)
	}
}

// expectReclaimed checks that the volume is gone from the storage system, by
// exactly one call.
func (s *scene) expectReclaimed(volume *v1.PersistentVolume) {
	s.t.Helper()
	if s.stored(handle(volume)) {
		s.t.Errorf("volume %s leaked: the storage system still has %s", volume.Name, handle(volume))
	}
	if calls := s.calls("DeleteVolume", handle(volume)); calls != 1 {
		s.t.Errorf("DeleteVolume was called %d times for %s, want once", calls, handle(volume))
	}
}

// expectKept checks that nobody has asked the driver to delete the volume, after
// giving everybody who might the time to.
func (s *scene) expectKept(volume *v1.PersistentVolume) {
	s.t.Helper()
	s.passQueues()
	if !s.stored(handle(volume)) {
		s.t.Errorf("the data of volume %s is lost: the storage system no longer has %s", volume.Name, handle(volume))
	}
	if calls := s.calls("DeleteVolume", handle(volume)); calls != 0 {
		s.t.Errorf("DeleteVolume was called %d times for %s, want never", calls, handle(volume))
	}
}

// passQueues sends another claim through all queues, from its creation until its
// volume is deleted: what was decided before it has been carried out by then.
func (s *scene) passQueues() {
	s.t.Helper()
	marker := s.client.CoreV1().PersistentVolumeClaims(s.namespace)
	claim := s.newClaim("", deleteClass)
	claim.GenerateName = "marker-"
	claim, err := marker.Create(s.ctx, claim, metav1.CreateOptions{})
	s.must(err, "create marker claim")
	volume := s.awaitBound(claim.Name)
	s.deleteClaim(claim.Name)
	s.awaitVolumeGone(volume.Name)
}

func TestTheFinalizerIsInTheFirstWrite(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	watcher, err := s.client.CoreV1().PersistentVolumes().Watch(s.ctx, metav1.ListOptions{})
	s.must(err, "watch volumes")
	defer watcher.Stop()
	claims := []*v1.PersistentVolumeClaim{s.createClaim("keep", retainClass), s.createClaim("drop", deleteClass)}
	seen := map[string]bool{}
	for event := range watcher.ResultChan() {
		volume, ok := event.Object.(*v1.PersistentVolume)
		if !ok || volume.Spec.ClaimRef == nil || volume.Spec.ClaimRef.Namespace != s.namespace {
			continue
		}
		want := volume.Spec.StorageClassName == deleteClass
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
