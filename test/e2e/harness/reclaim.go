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

// ReclaimCase is one life of a volume: static or dynamic, its reclaim policy, and the
// order in which claim and volume are deleted.
type ReclaimCase struct {
	Static bool
	Policy v1.PersistentVolumeReclaimPolicy
	// Becomes is the policy that the volume gets while bound, empty for no change.
	Becomes v1.PersistentVolumeReclaimPolicy
	Order   DeletionOrder
}

func (c ReclaimCase) String() string {
	kind := map[bool]string{true: "static", false: "dynamic"}[c.Static]
	policy := string(c.Policy)
	if c.Becomes != "" {
		policy += " to " + string(c.Becomes)
	}
	return fmt.Sprintf("%s, %s: %s", kind, policy, c.Order)
}

func (c ReclaimCase) lastPolicy() v1.PersistentVolumeReclaimPolicy {
	if c.Becomes != "" {
		return c.Becomes
	}
	return c.Policy
}

// IsReclaimed reports whether the storage system must not have the volume at the end.
// With the gate off, a volume deleted before its claim leaks.
func (c ReclaimCase) IsReclaimed(honor bool) bool {
	return c.lastPolicy() == v1.PersistentVolumeReclaimDelete && (honor || c.Order == ClaimOnly)
}

// BindAndDelete plays the case until the PersistentVolume no longer exists.
func (s *Session) BindAndDelete(c ReclaimCase, honor bool) *v1.PersistentVolume {
	s.T.Helper()
	volume := s.bind(c)
	s.ExpectFinalizer(volume, honor && c.Policy == v1.PersistentVolumeReclaimDelete)
	if c.Becomes != "" {
		s.SetPolicy(volume.Name, c.Becomes)
		s.ExpectFinalizer(volume, honor && c.Becomes == v1.PersistentVolumeReclaimDelete)
	}
	switch c.Order {
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

// bind returns the volume bound to the claim named "claim".
func (s *Session) bind(c ReclaimCase) *v1.PersistentVolume {
	s.T.Helper()
	if !c.Static {
		class := map[v1.PersistentVolumeReclaimPolicy]string{v1.PersistentVolumeReclaimDelete: DeleteClass,
			v1.PersistentVolumeReclaimRetain: RetainClass}[c.Policy]
		s.CreateClaim("claim", class)
		return s.AwaitBound("claim")
	}
	s.CreateVolume(s.CreateStoredVolume("static"), c.Policy)
	s.CreateClaim("claim", s.Namespace)
	return s.AwaitBound("claim")
}

// ExpectFinalizer waits until the volume has the finalizer of the external provisioner.
// If the finalizer is not wanted, it checks the volume after all queues were passed.
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

// ExpectReclaimed fails the test unless exactly one DeleteVolume call removed the volume
// from the storage system.
func (s *Session) ExpectReclaimed(volume *v1.PersistentVolume) {
	s.T.Helper()
	if s.IsStored(Handle(volume)) {
		s.T.Errorf("volume %s leaked: the storage system still has %s", volume.Name, Handle(volume))
	}
	if calls := s.CountCalls("DeleteVolume", Handle(volume)); calls != 1 {
		s.T.Errorf("DeleteVolume was called %d times for %s, want once", calls, Handle(volume))
	}
}

// PassQueues provisions and deletes another claim. Earlier items have left all queues by
// then.
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

// UnservedDriver is a CSI driver without a provisioner in the cluster, so that only the
// test changes the finalizers of its volumes.
const UnservedDriver = "stale.example.com"
