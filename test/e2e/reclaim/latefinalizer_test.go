package reclaim

import (
	"maps"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/reclaim"
	"github.com/exeunt-io/exeunt/pkg/reclaim/external"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// tooLate returns a static volume of the driver that is bound, has the policy Delete
// and was deleted before its finalizer could come.
func tooLate(s *harness.Session) *v1.PersistentVolume {
	s.T.Helper()
	s.CreateVolume(s.CreateStoredVolume("late"), v1.PersistentVolumeReclaimRetain)
	s.CreateClaim("claim", s.Namespace)
	volume := s.AwaitBound("claim")
	s.DeleteVolume(volume.Name)
	s.SetPolicy(volume.Name, v1.PersistentVolumeReclaimDelete)
	return volume
}

func isMarked(v *v1.PersistentVolume) bool { return reclaim.StatusOf(v) == reclaim.StatusPending }

func TestTerminatingVolumeWithoutFinalizerIsStillReclaimed(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	volume := tooLate(s)
	marked := s.AwaitVolume(volume.Name, "is marked", isMarked)
	if finalizer.Has(marked.Finalizers, finalizer.External) {
		t.Fatalf("the volume has its finalizer, so the test proves nothing: %v", marked.Finalizers)
	}
	s.AwaitEvent(volume, string(external.TooLateToProtect))
	expectKept(s, volume) // for its claim is there
	s.DeleteClaim("claim")
	s.AwaitVolumeGone(volume.Name)
	s.ExpectReclaimed(volume)
}

func TestPolicyRetainEndsWaitForDeletion(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	volume := tooLate(s)
	s.AwaitVolume(volume.Name, "is marked", isMarked)
	s.SetPolicy(volume.Name, v1.PersistentVolumeReclaimRetain)
	s.DeleteClaim("claim")
	s.AwaitVolumeGone(volume.Name)
	expectKept(s, volume)
}

func TestTerminatingVolumeWithoutFinalizerIsNeverStuck(t *testing.T) {
	setups := map[string]harness.Setup{
		"upstream's sidecar marks nothing, so nobody waits": {UpstreamSidecar: true},
		"upstream's loops do not know the mark":             {UpstreamLoops: true},
		"the provisioner's gate is off":                     provisionerOff,
		"the pv-controller's gate is off":                   controllerOff,
	}
	harness.Parallel(t, slices.Collect(maps.Values(setups))...)
	for name, how := range setups {
		t.Run(name, func(t *testing.T) {
			s := harness.Join(t, how)
			volume := tooLate(s)
			heldByNobody := how.UpstreamLoops || how.ControllerFlags != ""
			if heldByNobody {
				s.AwaitVolume(volume.Name, "is marked", isMarked)
			}
			s.DeleteClaim("claim")
			s.AwaitVolumeGone(volume.Name)
			if heldByNobody && s.IsStored(harness.Handle(volume)) {
				s.AwaitEvent(volume, string(external.TooLateToProtect))
			}
		})
	}
}

func TestProvisionerWithGateOffRemovesPendingAnnotation(t *testing.T) {
	s := harness.Join(t, provisionerOff)
	s.CreateVolume(s.CreateStoredVolume("late"), v1.PersistentVolumeReclaimDelete, func(v *v1.PersistentVolume) {
		v.Annotations = map[string]string{reclaim.Annotation: reclaim.AnnotationPending}
	})
	s.CreateClaim("claim", s.Namespace)
	volume := s.AwaitBound("claim")
	s.AwaitVolume(volume.Name, "is not marked", func(v *v1.PersistentVolume) bool { return reclaim.StatusOf(v) == reclaim.StatusNone })
	s.DeleteVolume(volume.Name)
	s.DeleteClaim("claim")
	s.AwaitVolumeGone(volume.Name)
}
