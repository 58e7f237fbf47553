package harness

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
)

// DeletionOrder is the order in which the user deletes claim and volume.
type DeletionOrder string

// The orders of deletion.
const (
	ClaimOnly       DeletionOrder = "claim only"
	ClaimThenVolume DeletionOrder = "claim, then PV"
	VolumeThenClaim DeletionOrder = "PV, then claim"
)

// ReclaimCase is one case of rows.md, "e2e": how a volume comes, what happens to its
// policy, and how it goes.
type ReclaimCase struct {
	Static bool
	Policy v1.PersistentVolumeReclaimPolicy
	// becomes is the policy that it gets while bound; empty for none.
	Becomes v1.PersistentVolumeReclaimPolicy
	Order   DeletionOrder
}

func (j ReclaimCase) String() string {
	kind := map[bool]string{true: "static", false: "dynamic"}[j.Static]
	policy := string(j.Policy)
	if j.Becomes != "" {
		policy += " to " + string(j.Becomes)
	}
	return fmt.Sprintf("%s, %s: %s", kind, policy, j.Order)
}

func (j ReclaimCase) lastPolicy() v1.PersistentVolumeReclaimPolicy {
	if j.Becomes != "" {
		return j.Becomes
	}
	return j.Policy
}

// IsReclaimed says whether the volume must be gone from the storage system. With the
// gate off, a volume that is deleted before its claim stays behind: the very leak.
func (j ReclaimCase) IsReclaimed(honor bool) bool {
	return j.lastPolicy() == v1.PersistentVolumeReclaimDelete && (honor || j.Order == ClaimOnly)
}

// BindAndDelete takes one volume along its journey until its object is gone.
func (s *Session) BindAndDelete(j ReclaimCase, honor bool) *v1.PersistentVolume {
	s.T.Helper()
	volume := s.bind(j)
	s.ExpectFinalizer(volume, honor && j.Policy == v1.PersistentVolumeReclaimDelete)
	if j.Becomes != "" {
		s.SetPolicy(volume.Name, j.Becomes)
		s.ExpectFinalizer(volume, honor && j.Becomes == v1.PersistentVolumeReclaimDelete)
	}
	switch j.Order {
	case ClaimOnly:
		s.DeleteClaim("claim")
	case ClaimThenVolume:
		s.DeleteClaim("claim")
		s.AwaitVolume(volume.Name, "is released", IsReleased)
		s.DeleteVolume(volume.Name)
	case VolumeThenClaim:
		s.DeleteVolume(volume.Name)
		s.AwaitVolume(volume.Name, "is Terminating and still bound", func(v *v1.PersistentVolume) bool {
			return v.DeletionTimestamp != nil && v.Status.Phase == v1.VolumeBound
		})
		s.DeleteClaim("claim")
	}
	s.AwaitClaimGone("claim")
	s.AwaitVolumeGone(volume.Name)
	return volume
}

// bind returns the volume of a claim named "claim", bound as the journey begins.
func (s *Session) bind(j ReclaimCase) *v1.PersistentVolume {
	s.T.Helper()
	if !j.Static {
		class := map[v1.PersistentVolumeReclaimPolicy]string{v1.PersistentVolumeReclaimDelete: DeleteClass, v1.PersistentVolumeReclaimRetain: RetainClass}[j.Policy]
		s.CreateClaim("claim", class)
		return s.AwaitBound("claim")
	}
	s.CreateVolume(s.CreateStoredVolume("static"), j.Policy)
	s.CreateClaim("claim", s.Namespace)
	return s.AwaitBound("claim")
}

// ExpectFinalizer waits for the finalizer External to be there. Where it must not
// be, it looks at every version of the volume so far instead.
func (s *Session) ExpectFinalizer(volume *v1.PersistentVolume, wanted bool) {
	s.T.Helper()
	has := func(v *v1.PersistentVolume) bool { return finalizer.Has(v.Finalizers, finalizer.External) }
	if wanted {
		s.AwaitVolume(volume.Name, "has the finalizer", has)
		return
	}
	s.AwaitVolume(volume.Name, "has no finalizer", func(v *v1.PersistentVolume) bool { return !has(v) })
	s.PassQueues()
	now, err := s.Client.CoreV1().PersistentVolumes().Get(s.Ctx, volume.Name, metav1.GetOptions{})
	s.Must(err, "read volume")
	if has(now) {
		s.T.Errorf("volume %s got the finalizer: %v", volume.Name, now.Finalizers)
	}
}

// ExpectReclaimed checks that the volume is gone from the storage system, by
// exactly one call.
func (s *Session) ExpectReclaimed(volume *v1.PersistentVolume) {
	s.T.Helper()
	if s.IsStored(Handle(volume)) {
		s.T.Errorf("volume %s leaked: the storage system still has %s", volume.Name, Handle(volume))
	}
	if calls := s.CountCalls("DeleteVolume", Handle(volume)); calls != 1 {
		s.T.Errorf("DeleteVolume was called %d times for %s, want once", calls, Handle(volume))
	}
}

// PassQueues sends another claim through all queues, from its creation until its
// volume is deleted: what was decided before it has been carried out by then.
func (s *Session) PassQueues() {
	s.T.Helper()
	marker := s.Client.CoreV1().PersistentVolumeClaims(s.Namespace)
	claim := s.NewClaim("", DeleteClass)
	claim.GenerateName = "marker-"
	claim, err := marker.Create(s.Ctx, claim, metav1.CreateOptions{})
	s.Must(err, "create marker claim")
	volume := s.AwaitBound(claim.Name)
	s.DeleteClaim(claim.Name)
	s.AwaitVolumeGone(volume.Name)
}

// UnservedDriver is a driver that no program in the cluster serves, so that nobody but
// the test touches its volumes' finalizers.
const UnservedDriver = "stale.example.com"
