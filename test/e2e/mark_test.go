package e2e

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/reclaim"
)

// tooLate returns a static volume of the driver that is bound, has the policy Delete
// and was deleted before its finalizer could come.
func (s *scene) tooLate() *v1.PersistentVolume {
	s.t.Helper()
	s.createVolume(s.makeVolume("late"), v1.PersistentVolumeReclaimRetain)
	s.createClaim("claim", s.namespace)
	volume := s.awaitBound("claim")
	s.deleteVolume(volume.Name)
	s.setPolicy(volume.Name, v1.PersistentVolumeReclaimDelete)
	return volume
}

func isMarked(v *v1.PersistentVolume) bool { return reclaim.MarkOf(v) == reclaim.MarkPending }

func TestAVolumeDeletedBeforeItsFinalizerCameIsHeldUntilItsDataIsGone(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	volume := s.tooLate()
	marked := s.awaitVolume(volume.Name, "is marked", isMarked)
	if finalizer.Has(marked.Finalizers, finalizer.External) {
		t.Fatalf("the volume has its finalizer, so the test proves nothing: %v", marked.Finalizers)
	}
	s.awaitEvent(volume, string(reclaim.TooLateToProtect))
	s.expectKept(volume) // for its claim is there
	s.deleteClaim("claim")
	s.awaitVolumeGone(volume.Name)
	s.expectReclaimed(volume)
}

func TestAMarkedVolumeThatIsKeptAfterAllIsLetGo(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	volume := s.tooLate()
	s.awaitVolume(volume.Name, "is marked", isMarked)
	s.setPolicy(volume.Name, v1.PersistentVolumeReclaimRetain)
	s.deleteClaim("claim")
	s.awaitVolumeGone(volume.Name)
	s.expectKept(volume)
}

func TestAVolumeDeletedTooLateIsNotStuckBesideUpstream(t *testing.T) {
	for name, how := range map[string]setup{
		"upstream's sidecar marks nothing, so nobody waits": {honor: true, upstreamSidecar: true},
		"upstream's loops do not know the mark":             {honor: true, upstreamLoops: true},
		"the provisioner's gate is off":                     {honor: true, provisionerOff: true},
		"the pv-controller's gate is off":                   {honor: true, controller: gateOff},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := enter(t, shared(t, how))
			volume := s.tooLate()
			heldByNobody := how.upstreamLoops || how.controller != ""
			if heldByNobody {
				s.awaitVolume(volume.Name, "is marked", isMarked)
			}
			s.deleteClaim("claim")
			s.awaitVolumeGone(volume.Name)
			if heldByNobody && s.stored(handle(volume)) {
				s.awaitEvent(volume, string(reclaim.TooLateToProtect))
			}
		})
	}
}

func TestAProvisionerWhoseGateIsOffTakesBackItsMark(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true, provisionerOff: true}))
	s.createVolume(s.makeVolume("late"), v1.PersistentVolumeReclaimDelete, func(v *v1.PersistentVolume) {
		v.Annotations = map[string]string{reclaim.MarkAnnotation: reclaim.MarkedPending}
	})
	s.createClaim("claim", s.namespace)
	volume := s.awaitBound("claim")
	s.awaitVolume(volume.Name, "is not marked", func(v *v1.PersistentVolume) bool { return reclaim.MarkOf(v) == reclaim.NoMark })
	s.deleteVolume(volume.Name)
	s.deleteClaim("claim")
	s.awaitVolumeGone(volume.Name)
}
